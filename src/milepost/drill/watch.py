"""Notes what code does to the outside without declaring it: sockets, processes, files written outside its world.

An audit hook in an undisturbed run. Effects may do all of that; the plan and plain steps may not. Each place is noted
once, with the user's own line. Called in a drill's process.
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import milepost
from milepost.runtime.scope import current

SOCKETS = frozenset(["socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"])
PROCESSES = frozenset(
    ["subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty"]
)
CHANGES = {"os.remove": 1, "os.rename": 2, "os.rmdir": 1, "os.mkdir": 1, "os.link": 2, "os.symlink": 2,
           "os.truncate": 1, "os.chmod": 1, "os.chown": 1, "os.utime": 1, "sqlite3.connect": 1}  # fmt: skip
"""Events that name the paths they change in their first arguments."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_OURS = str(Path(milepost.__file__).parent)
_EXAMPLES = str(Path(_OURS, "examples"))
_LIBRARIES = ("<", *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")))
_CALM = ("/dev/", "/proc/")


class Watch:
    """The hook. It is on from `begin` to `end` and never removed: Python has no way to."""

    def __init__(self, notes: Path, own: Sequence[str]) -> None:
        self._descriptor = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._own = tuple(os.path.realpath(folder) for folder in own)
        self._seen: set[tuple[str, str, str]] = set()
        self._on = False

    def begin(self) -> None:
        sys.addaudithook(self._heard)
        self._on = True

    def end(self) -> None:
        self._on = False

    def _heard(self, event: str, args: tuple[Any, ...]) -> None:
        if not self._on:
            return
        if event in SOCKETS:
            self._found("socket", _address(args))
        elif event in PROCESSES:
            self._found("process", str(args[0])[:200] if args else event)
        elif event == "open":
            self._opened(*args)
        elif event in CHANGES:
            for path in args[: CHANGES[event]]:
                self._written(path)

    def _opened(self, path: Any, mode: str | None, flags: int) -> None:
        if (mode is not None and any(letter in mode for letter in "wax+")) or (mode is None and flags & _WRITING):
            self._written(path)

    def _written(self, path: Any) -> None:
        if not isinstance(path, (str, bytes, os.PathLike)) or path in (":memory:", b":memory:"):
            return
        text = os.fsdecode(path)
        if text.startswith("file:"):
            if "mode=ro" in text or "immutable=1" in text:
                return
            text = text.removeprefix("file:").removeprefix("//").partition("?")[0]
        place = os.path.realpath(text)
        if not place.startswith((*_CALM, *(f"{folder}{os.sep}" for folder in self._own), *self._own)):
            self._found("file", place)

    def _found(self, kind: str, what: str) -> None:
        """Note it, unless an effect did it. Crash: noted or not."""
        who = _who()
        line = _users_line(sys._getframe())
        if who is None or line is None or (who, kind, line) in self._seen:
            return
        self._seen.add((who, kind, line))
        note = {"who": who, "kind": kind, "what": what, "line": line}
        os.write(self._descriptor, json.dumps(note).encode("utf-8") + b"\n")


def _address(args: tuple[Any, ...]) -> str:
    address = args[1] if len(args) > 1 else "?"
    return ":".join(map(str, address[:2])) if isinstance(address, tuple) else str(address)


def _who() -> str | None:
    """Return whose code this is: a step's path, `the plan`, a verifier; None for effects and their lookups."""
    scope = current.get()
    if scope is None:
        return "a thread of no step"
    if scope.inside:
        return None if scope.inside.startswith(("effect", "the lookup")) else f"{scope.inside} of {scope.path}"
    return scope.path or "the plan"


def _users_line(frame: FrameType | None) -> str | None:
    """Return FILE:LINE of the user's code that did it, through whatever library; None when Milepost itself did."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_OURS) and not file.startswith(_EXAMPLES) and file != __file__:
            return None
        if file != __file__ and not file.startswith(_LIBRARIES):
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return None
