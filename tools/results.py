"""The results of harnesses, mutants and peers: one line of JSON each in a file, with the commit it was found on.

The file is named by MILEPOST_SOAK_RESULTS; without it nothing is kept. `reliability.py` makes the page from it.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
VARIABLE = "MILEPOST_SOAK_RESULTS"


def note(line: Mapping[str, object]) -> None:
    """Append a line with its commit and day to the file, if one is named. Crash: the line or none."""
    path = os.environ.get(VARIABLE)
    if path:
        kept = {**line, "commit": commit(), "day": datetime.now(UTC).date().isoformat()}
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(kept, ensure_ascii=False) + "\n")


def read(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a file of results, none when it is not there."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def commit() -> str:
    """Return the commit the package is on, with `+` when it was changed since; `unknown` outside a repository."""
    found = _git("rev-parse", "--short=10", "HEAD")
    if not found:
        return "unknown"
    return found + ("+" if _git("status", "--porcelain", "--", "src", "tests") else "")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""
