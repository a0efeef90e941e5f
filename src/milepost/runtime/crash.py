"""Crash points: the places at which a drill may end this process. Inert unless armed.

A driver reports each operation of the protocol before it, done (but not yet durable), and durable (but the
protocol not yet told). Arming is for tests and drills; nothing of the product reads what was reported.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping

armed: Callable[[str, str], None] | None = None
"""Called with the label of the operation and the phase: "before", "done" or "durable"."""


def arm_from(environ: Mapping[str, str]) -> None:
    """Arm from MILEPOST_CRASH_AT (a number: die there) or MILEPOST_CRASH_LOG (a file: note every point passed)."""
    global armed
    at, log = environ.get("MILEPOST_CRASH_AT"), environ.get("MILEPOST_CRASH_LOG")
    if at:
        armed = _die_at(int(at))
    elif log:
        armed = _note_in(log)


def _die_at(number: int) -> Callable[[str, str], None]:
    passed = 0

    def reached(label: str, phase: str) -> None:
        nonlocal passed
        passed += 1
        if passed == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return reached


def _note_in(path: str) -> Callable[[str, str], None]:
    """Crash: the file holds every point passed so far, one `label phase` a line."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def reached(label: str, phase: str) -> None:
        os.write(descriptor, f"{label} {phase}\n".encode())

    return reached
