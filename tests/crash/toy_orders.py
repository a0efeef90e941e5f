"""What a test orders a process to do at a place in a plan: die, hold, freeze, signal itself. Told by the environment.

TOY_DIE_IN, TOY_HOLD_IN: the name of a body; TOY_SIGNAL_IN: `BODY = NUMBER`, twice with TOY_SIGNAL_TWICE;
TOY_DIE_WAITING: die in the first wait; TOY_FREEZE_AT: stand still (SIGSTOP) at the first crash point so named.
Each body that begins leaves a line in `bodies`.
"""

from __future__ import annotations

import os
import signal
from contextlib import closing
from datetime import datetime
from pathlib import Path

from clock import SharedClock

from milepost.runtime import crash
from milepost.runtime.scope import current
from milepost.stores.sqlite.store import SqliteStore

RUN_ID = "toy"
LOOKS_MAX = 100_000
"""Looks at a journal for a record that must come; it comes within 50 ms."""


def began(name: str) -> None:
    """Leave a trace of a body that begins, whatever becomes of its process."""
    descriptor = os.open("bodies", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, f"{name}\n".encode())
    os.close(descriptor)
    if os.environ.get("TOY_DIE_IN") == name:
        os.kill(os.getpid(), signal.SIGKILL)
    if os.environ.get("TOY_HOLD_IN") == name:
        hold()
    if os.environ.get("TOY_SIGNAL_IN", "").partition(" = ")[0] == name:
        stop_and_hear(int(os.environ["TOY_SIGNAL_IN"].partition(" = ")[2]))


def hold() -> None:
    """Say through the pipe `ready` that this body runs, then wait until somebody opens the pipe `gate`."""
    for name in ("ready", "gate"):
        with open(name, "w" if name == "ready" else "r", encoding="ascii") as pipe:
            pipe.read() if name == "gate" else pipe.write("here")


def stop_and_hear(number: int) -> None:
    """Send this process a signal and go on when the run has heard of it."""
    scope = current.get()
    assert scope is not None
    run = scope.run
    os.kill(os.getpid(), number)
    run.bell.wait(lambda: run.stop_signal is not None)
    if os.environ.get("TOY_SIGNAL_TWICE"):
        os.kill(os.getpid(), number)


def arm_freezing() -> None:
    """Make this process stand still at the first crash point called TOY_FREEZE_AT, if it is told to."""
    wanted = [os.environ["TOY_FREEZE_AT"]] if "TOY_FREEZE_AT" in os.environ else []

    def reached(label: str, phase: str) -> None:
        if f"{label} {phase}" in wanted:
            wanted.clear()
            os.kill(os.getpid(), signal.SIGSTOP)

    if wanted:
        crash.armed = reached


def wait_until_recorded(kind: str) -> None:
    """Look through another connection until a record of this kind is durable (nobody waits for it, so within 50 ms)."""
    with closing(SqliteStore(Path("store.sqlite"), create=False)) as store:
        for _ in range(LOOKS_MAX):
            if any(record.kind == kind for record in store.records(RUN_ID)):
                return
    raise AssertionError(f"no {kind} became durable")


class OrderedClock(SharedClock):
    """The clock of a process: one that is told so dies when it begins to wait."""

    def about_to_wait(self, until: datetime) -> None:
        if os.environ.get("TOY_DIE_WAITING"):
            wait_until_recorded("wait_recorded")
            os.kill(os.getpid(), signal.SIGKILL)
        super().about_to_wait(until)
