"""A program whose second step needs more memory than it is given. Started by the harness `resources`."""

from __future__ import annotations

import sys
from pathlib import Path

from milepost import step, task
from milepost.errors import MilepostError
from milepost.stores.sqlite.store import SqliteStore

GREED_BYTES = 2 * 1024 * 1024 * 1024


def began(name: str) -> None:
    with open("bodies", "a", encoding="ascii") as file:
        file.write(f"{name}\n")


@step
def gentle() -> int:
    began("gentle")
    return 1


@step
def greedy(size: int) -> int:
    began("greedy")
    return sum(bytearray(b"\x01") * (size * GREED_BYTES))


@task
def poison() -> int:
    return greedy(gentle())


def main() -> int:
    store = SqliteStore(Path("store.sqlite"), create=True)
    try:
        return int(poison.options(store=store).run("r") == 0)
    except MilepostError as error:
        print(error.code, error)
        return error.exit_status
    finally:
        store.close()


if __name__ == "__main__":
    sys.exit(main())
