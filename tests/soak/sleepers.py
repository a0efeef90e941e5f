"""Processes that fall asleep (SIGSTOP) at a place of their own choosing and wake (SIGCONT) when they are told to.

As a program it is the warm process that forks them; `Sleepers` talks to it. A place is `point N` (the n-th crash
point), `answer N` (the provider has the n-th call and its answer is not read), `commit before N` (the transaction is
open and holds the lock of the store) or `commit after N` (it is committed, and nobody was told).
"""

from __future__ import annotations

import functools
import http.client
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toy_world import HERE as CRASH
from toy_world import Starter
from warm_start import start

from milepost.runtime import crash
from milepost.stores.sqlite import connection

PATIENCE_S = 0.05


class Sleepers(Starter):
    """A warm process that forks one sleeper at a time, and other processes beside it."""

    def __init__(self) -> None:
        here = Path(__file__)
        self.path = os.pathsep.join([str(here.parent), str(CRASH), str(CRASH.parent), *filter(None, sys.path)])
        self._process = subprocess.Popen(
            [sys.executable, str(here)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": self.path},
        )

    def start(self, order: dict[str, Any]) -> int:
        """Start a process and wait for its end; return its exit status."""
        found = self._say({"order": order})
        assert found is not None
        return found

    def start_impatient(self, order: dict[str, Any]) -> int:
        """As `start`; it gives up soon when another process holds the lock of the store."""
        found = self._say({"order": order, "patience_s": PATIENCE_S})
        assert found is not None
        return found

    def fall_asleep(self, order: dict[str, Any], place: str) -> int | None:
        """Start a process that sleeps at a place. None when it sleeps, its exit status when it ended before."""
        return self._say({"order": order, "place": place})

    def wake(self) -> int:
        """Wake the sleeper; return its exit status."""
        found = self._say({"wake": True})
        assert found is not None
        return found

    def _say(self, request: dict[str, Any]) -> int | None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        found: int | None = json.loads(self._process.stdout.readline())
        return found


# ── in the process that is to fall asleep ──


def sleep_at(number: int) -> Callable[[], None]:
    """Return what counts, and sleeps the n-th time."""
    passed = 0

    def counted() -> None:
        nonlocal passed
        passed += 1
        if passed == number:
            os.kill(os.getpid(), signal.SIGSTOP)

    return counted


def prepare(place: str) -> None:
    """Arrange that this process sleeps at a place."""
    what, _, number = place.rpartition(" ")
    counted = sleep_at(int(number))
    if what == "point":
        crash.armed = lambda label, phase: counted()
    elif what == "answer":
        sleep_before_answers(counted)
    else:
        sleep_in_commits(counted, is_after=what == "commit after")


def sleep_before_answers(counted: Callable[[], None]) -> None:
    class Answering(http.client.HTTPConnection):
        def getresponse(self) -> http.client.HTTPResponse:
            counted()
            return super().getresponse()

    http.client.HTTPConnection = Answering  # type: ignore[misc]


def sleep_in_commits(counted: Callable[[], None], *, is_after: bool) -> None:
    class Committing(sqlite3.Connection):
        def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
            if sql == "COMMIT" and not is_after:
                counted()
            done = super().execute(sql, *args)
            if sql == "COMMIT" and is_after:
                counted()
            return done

    sqlite3.connect = functools.partial(sqlite3.connect, factory=Committing)  # type: ignore[assignment]


# ── the warm process ──


def fork(request: dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    if "place" in request:
        prepare(request["place"])
    if "patience_s" in request:
        connection.BUSY_S = request["patience_s"]
    status = start(request["order"])
    sys.stderr.flush()
    os._exit(status)


def ended(pid: int) -> int | None:
    """Wait until a process ends or sleeps; return its exit status, None when it sleeps."""
    _, status = os.waitpid(pid, os.WUNTRACED)
    return None if os.WIFSTOPPED(status) else os.waitstatus_to_exitcode(status)


def main() -> None:
    asleep: list[int] = []
    for line in sys.stdin:
        request = json.loads(line)
        if "wake" in request:
            pid = asleep.pop()
            os.kill(pid, signal.SIGCONT)
        else:
            pid = fork(request)
        status = ended(pid)
        if status is None:
            asleep.append(pid)
        print(json.dumps(status), flush=True)
    for pid in asleep:
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
