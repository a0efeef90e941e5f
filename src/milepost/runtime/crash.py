"""Crash points: the places at which a drill may end this process. Inert unless armed.

A driver reports each operation of the protocol before it, done (but not yet durable), and durable (but the
protocol not yet told). Arming is for tests and drills; nothing of the product reads what was reported.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from milepost.runtime.scope import RuntimeCall

armed: Callable[[str, str], None] | None = None
"""Called with the label of the operation and the phase: "before", "done" or "durable"."""

sending: Callable[[RuntimeCall], Callable[..., Any]] | None = None
"""Given a call about to be sent, returns the function to send with: a drill notes what it did, or loses its answer."""


def function_to_send(call: RuntimeCall) -> Callable[..., Any]:
    """Return an effect's own function, unless a drill stands between it and the provider."""
    function: Callable[..., Any] = call.spec.function
    return function if sending is None else sending(call)


def arm_from(environ: Mapping[str, str]) -> None:
    """Arm from MILEPOST_CRASH_AT (die there) or MILEPOST_CRASH_LOG (a file: note every point passed).

    Where to die is a number, the n-th point passed in this process, or `LABEL PHASE N`, the n-th of its kind, such
    as `send durable 3`: the third call has reached its provider and nothing says so yet.
    """
    global armed
    at, notes = environ.get("MILEPOST_CRASH_AT"), environ.get("MILEPOST_CRASH_LOG")
    if at:
        armed = _die_at(*_place(at))
    elif notes:
        armed = _note_in(notes)


def _place(at: str) -> tuple[int, str | None]:
    """Read a place: its number, and the `LABEL PHASE` that is counted (None: every point)."""
    kind, _, number = at.rpartition(" ")
    return int(number), kind or None


def _die_at(number: int, kind: str | None) -> Callable[[str, str], None]:
    passed = 0

    def reached(label: str, phase: str) -> None:
        nonlocal passed
        counts = kind is None or kind == f"{label} {phase}"
        passed += counts
        if counts and passed == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return reached


def _note_in(path: str) -> Callable[[str, str], None]:
    """Crash: the file holds every point passed so far, one `label phase` a line."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def reached(label: str, phase: str) -> None:
        os.write(descriptor, f"{label} {phase}\n".encode())

    return reached
