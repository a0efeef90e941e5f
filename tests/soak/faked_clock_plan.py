"""A program under libfaketime whose step sets the machine's clock back an hour. Started by `test_slice_faketime`."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path

from milepost import Applied, Found, Key, NotFound, Retry, effect, sleep, step, task
from milepost.stores.sqlite.store import SqliteStore

JUMPS = {"back": "-1h", "on": "+1d", "far back": "-2d"}
LOSES = "on"
LEDGER = Path("ledger")


class Busy(Exception):
    """Not now."""


def set_clock(offset: str) -> None:
    """Let every clock but the monotonic one jump. Crash: the old offset or the new one."""
    new = Path("offset.new")
    new.write_text(offset, encoding="ascii")
    os.replace(new, os.environ["FAKETIME_TIMESTAMP_FILE"])


@step
def jump(name: str) -> str:
    set_clock(JUMPS[name])
    return name


@step(retry=Retry(on=Busy, attempts=3, first_wait=timedelta(seconds=0.2)))
def busy() -> str:
    if not Path("tried").exists():
        Path("tried").touch()
        set_clock("-3h")
        raise Busy
    return "free"


def find(key: Key, line: str) -> Found[str] | NotFound:
    there = LEDGER.read_text(encoding="ascii").split() if LEDGER.exists() else []
    return Found(line, ref=str(key)) if str(key) in there else NotFound()


@effect(key=lambda line: line, lookup=find, settle=timedelta(seconds=0.2), provider="ledger")
def post(key: Key, line: str) -> Applied[str]:
    with LEDGER.open("a", encoding="ascii") as file:
        file.write(f"{key}\n")
    if line == LOSES and not Path("lost").exists():
        Path("lost").touch()
        set_clock("-4h")
        raise TimeoutError("no answer")
    return Applied(line, ref=str(key))


@task
def jumping() -> list[str]:
    done = [post(jump(name)) for name in JUMPS]
    sleep(timedelta(seconds=0.2), name="nap")
    return [*done, busy()]


def main() -> None:
    store = SqliteStore(Path("store.sqlite"), create=True)
    try:
        print(json.dumps(jumping.options(store=store).run("r")))
    finally:
        store.close()


if __name__ == "__main__":
    main()
