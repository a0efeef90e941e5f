"""A step that makes child processes which try to speak for the run. `fork_plan.py HOW` prints what each try met.

HOW is `os` (os.fork), `fork` or `spawn` (multiprocessing). The store is `store.sqlite` in the working folder.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Callable
from pathlib import Path

from milepost import Key, effect, heartbeat, step, task
from milepost.errors import MilepostError
from milepost.stores.sqlite.store import SqliteStore

TRIES = ("step", "effect", "heartbeat", "map")


def note(file: str) -> None:
    with Path(file).open("a", encoding="ascii") as notes:
        notes.write(f"{os.getpid()}\n")


@step
def inner(word: str) -> str:
    note("inner")
    return word.upper()


@effect(provider="toy")
def send(key: Key, word: str) -> str:
    note("sent")
    return word


def try_all() -> dict[str, str]:
    """Try everything that would write to the journal or to the provider; return the code each was refused with."""
    tries: dict[str, Callable[[], object]] = {
        "step": lambda: inner("child"),
        "effect": lambda: send("child"),
        "heartbeat": lambda: heartbeat(1),
        "map": lambda: inner.map(["a", "b"], concurrency=2),
    }
    return {name: met(call) for name, call in tries.items()}


def met(call: Callable[[], object]) -> str:
    try:
        call()
    except MilepostError as error:
        return error.code
    except BaseException as error:
        return type(error).__name__
    return "done"


def child(path: str) -> None:
    Path(path).write_text(json.dumps(try_all()), encoding="utf-8")


@step
def outer(how: str) -> dict[str, str]:
    if how == "os":
        pid = os.fork()
        if pid == 0:
            child("met")
            os._exit(0)
        os.waitpid(pid, 0)
    else:
        process = multiprocessing.get_context(how).Process(target=child, args=("met",))
        process.start()
        process.join()
    inner("parent")
    found: dict[str, str] = json.loads(Path("met").read_text(encoding="utf-8"))
    return found


@task
def forks(how: str) -> dict[str, str]:
    return outer(how) | {"sent": send("parent")}


def main() -> None:
    store = SqliteStore(Path("store.sqlite"), create=True)
    found = forks.options(store=store).run("forks", how=sys.argv[1])
    store.close()
    print(json.dumps({**found, "pid": os.getpid()}))


if __name__ == "__main__":
    main()
