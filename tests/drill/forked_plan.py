"""A process forked from a warm one runs a task; a thread in it that belongs to no run calls a step.

`forked_plan.py` prints what the thread met. The store is `store.sqlite` in the working folder.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from milepost import step, task
from milepost.errors import MilepostError
from milepost.stores.sqlite.store import SqliteStore


@step
def inner() -> str:
    return "ran"


@step
def outer() -> str:
    met: list[str] = []

    def stranger() -> None:
        try:
            met.append(inner())
        except MilepostError as error:
            met.append(error.code)

    thread = threading.Thread(target=stranger)
    thread.start()
    thread.join()
    return met[0]


@task
def plan() -> str:
    return outer()


def main() -> None:
    pid = os.fork()
    if pid:
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    store = SqliteStore(Path("store.sqlite"), create=True)
    print(plan.options(store=store).run("forked"), flush=True)
    store.close()
    os._exit(0)


if __name__ == "__main__":
    main()
