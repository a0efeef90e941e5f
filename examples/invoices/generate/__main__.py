"""`python -m invoices.generate`: writes one month into a folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from invoices.generate import COUNT, SEED, generate_month


def main() -> None:
    """Write the month and say what is in it."""
    parser = argparse.ArgumentParser(prog="invoices.generate", description="A month of supplier invoices.")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=COUNT, help="mails, at least 100")
    parser.add_argument("--out", type=Path, required=True, help="a folder that does not exist yet")
    options = parser.parse_args()
    if options.count < 100:
        parser.error(f"--count: expected at least 100 mails, so that everything can be planted; found {options.count}")
    try:
        entries = generate_month(options.out, seed=options.seed, count=options.count)
    except FileExistsError as error:
        parser.error(f"--out: expected a new folder, found that {error.filename} exists")
    planted = sum(entry.planted is not None for entry in entries)
    print(f"{options.out}: {len(entries)} mails, {planted} with something planted (see truth.json)")


if __name__ == "__main__":
    main()
