"""Notes what code does to the outside without declaring it: sockets, processes, files written outside its world.

An audit hook in an undisturbed run. Effects may do all of that; the plan and plain steps may not. Each place is noted
once, with the user's own line. Called in a drill's process.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from milepost.runtime.outward import EVENTS, Deed, deeds, listen, users_line
from milepost.runtime.scope import current

_CALM = ("/dev/", "/proc/")
_FILES = "/dev/shm/"
"""What stands among the devices and is a folder of files."""


class Watch:
    """The hook. It is on from `begin` to `end` and never removed: Python has no way to."""

    def __init__(self, notes: Path, own: Sequence[str]) -> None:
        self._descriptor = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._own = tuple(os.path.realpath(folder) for folder in own)
        self._seen: set[tuple[str, str, str]] = set()
        self._on = False

    def begin(self) -> None:
        listen(self._heard)
        self._on = True

    def end(self) -> None:
        self._on = False

    def _heard(self, event: str, args: tuple[Any, ...]) -> None:
        if not self._on or event not in EVENTS:
            return
        for deed in deeds(event, args):
            if deed.kind != "name" and not (deed.kind == "file" and self._is_own(deed.place)):
                self._found(deed)

    def _is_own(self, place: str) -> bool:
        is_calm = place.startswith(_CALM) and not place.startswith(_FILES)
        return is_calm or place.startswith((*(f"{folder}{os.sep}" for folder in self._own), *self._own))

    def _found(self, deed: Deed) -> None:
        """Note it, unless an effect did it. Crash: noted or not."""
        who = _who()
        line = users_line(sys._getframe())
        if who is None or line is None or (who, deed.kind, line) in self._seen:
            return
        self._seen.add((who, deed.kind, line))
        note = {"who": who, "kind": deed.kind, "what": deed.what, "line": line}
        os.write(self._descriptor, json.dumps(note).encode("utf-8") + b"\n")


def _who() -> str | None:
    """Return whose code this is: a step's path, `the plan`, a verifier; None for effects and their lookups."""
    scope = current.get()
    if scope is None:
        return "a thread of no step"
    if scope.inside:
        return None if scope.inside.startswith(("effect", "the lookup")) else f"{scope.inside} of {scope.path}"
    return scope.path or "the plan"
