"""What code does to the outside, as Python's audit events tell it: sockets, processes, files that are changed.

The drill notes it, the guard of shadow runs refuses it; here nothing is judged. No event tells of what a C extension
does by itself, of writes through a descriptor that is open already, nor what `os.open(…, dir_fd=…)` is relative to.
"""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl, unquote

SOCKETS = frozenset(["socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"])
SYSLOG = "syslog.syslog"
NAMES = frozenset(["socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"])
PROCESSES = frozenset(
    ["subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty"]
)
CHANGES = {
    "os.remove": ((0, 1),),
    "os.rename": ((0, 2), (1, 3)),
    "os.rmdir": ((0, 1),),
    "os.mkdir": ((0, 2),),
    "os.link": ((0, 2), (1, 3)),
    "os.symlink": ((1, 2),),
    "os.truncate": ((0, None),),
    "os.chmod": ((0, 2),),
    "os.chown": ((0, 3),),
    "os.utime": ((0, 3),),
    "os.setxattr": ((0, None),),
    "os.removexattr": ((0, None),),
    "os.mknod": ((0, 1),),
    "os.mkfifo": ((0, 1),),
}
"""Events that name the paths they change: at which argument, and at which the folder's descriptor it is relative to."""
SILENT = tuple(name for name in ("mknod", "mkfifo") if hasattr(os, name))
"""Functions of `os` that Python has no event for."""
DATABASE = "sqlite3.connect"
INTERPRETER = "cpython.PyInterpreterState_New"
EVENTS = frozenset([*SOCKETS, SYSLOG, *NAMES, *PROCESSES, *CHANGES, "open", DATABASE, INTERPRETER])
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_OURS = str(Path(__file__).parents[1]) + os.sep
_EXAMPLES = str(Path(_OURS, "examples"))
_WRITERS = tuple(
    _OURS + name
    for name in ("artifacts/", "stores/", "sources/", "runtime/witness.py", "runtime/files.py", "runtime/crash.py")
)
"""Where Milepost itself writes or asks. Elsewhere its frames only carry users' functions."""
_LISTENERS = tuple(_OURS + name for name in ("runtime/outward.py", "runtime/guard.py", "drill/watch.py"))
_LIBRARIES = ("<", *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")))


class Deed(NamedTuple):
    """One thing done to the outside: which host and port, program or file; `what` says it to people."""

    kind: Literal["socket", "name", "process", "file", "interpreter"]
    what: str
    place: str = ""  # a host, the path of a local socket or a file, a program
    port: int | None = None


def listen(hear: Callable[[str, tuple[Any, ...]], None]) -> None:
    """Let `hear` judge every audit event from now on, in the thread it happens in. Python cannot take it back."""
    for name in SILENT:
        if not hasattr(getattr(os, name), "__wrapped__"):
            setattr(os, name, _telling(name, getattr(os, name)))
    sys.addaudithook(hear)


def _telling(name: str, function: Callable[..., None]) -> Callable[..., None]:
    """Return a function of `os` that tells what it is about to do, as its neighbours do by themselves."""

    @functools.wraps(function)
    def told(path: Any, *args: Any, dir_fd: int | None = None, **more: Any) -> None:
        sys.audit(f"os.{name}", path, -1 if dir_fd is None else dir_fd)
        function(path, *args, dir_fd=dir_fd, **more)

    return told


def deeds(event: str, args: tuple[Any, ...]) -> Iterator[Deed]:
    """Yield what an event does to the outside; nothing for what only reads."""
    if event == "open":
        yield from _opened(*args)
    elif event in CHANGES:
        yield from _changed(event, args)
    elif event == DATABASE:
        yield from _connected(args[0])
    elif event in SOCKETS:
        yield from _reached(args)
    elif event == SYSLOG:
        yield Deed("socket", "syslog", "/dev/log")
    elif event in NAMES:
        yield from _looked_up(args)
    elif event in PROCESSES:
        program = os.fsdecode(args[0]) if args and isinstance(args[0], (str, bytes, os.PathLike)) else event
        yield Deed("process", program[:200], program)
    elif event == INTERPRETER:
        yield Deed("interpreter", "an interpreter inside this one")


# ── sockets ─────────────────────────────────────────────────────────────────────────────────────────


def _reached(args: tuple[Any, ...]) -> Iterator[Deed]:
    address = args[1] if len(args) > 1 else None
    if address is None:
        return  # on a socket that is connected: that was told then
    if isinstance(address, tuple):
        port = address[1] if len(address) > 1 and isinstance(address[1], int) else None
        yield Deed("socket", ":".join(map(str, address[:2])), str(address[0]), port)
    else:
        place = os.fsdecode(address) if isinstance(address, (str, bytes)) else str(address)
        yield Deed("socket", place, place)


def _looked_up(args: tuple[Any, ...]) -> Iterator[Deed]:
    host = args[0].decode("ascii", "replace") if isinstance(args[0], bytes) else args[0]
    if isinstance(host, str) and host:
        yield Deed("name", host, host)


# ── files ───────────────────────────────────────────────────────────────────────────────────────────


def _opened(path: Any, mode: str | None, flags: int) -> Iterator[Deed]:
    writes = any(letter in mode for letter in "wax+") if mode is not None else bool(flags & _WRITING)
    if writes and (place := _place(path, None)) is not None:
        yield Deed("file", place, place)


def _changed(event: str, args: tuple[Any, ...]) -> Iterator[Deed]:
    for at, folder_at in CHANGES[event]:
        folder = args[folder_at] if folder_at is not None and folder_at < len(args) else None
        path = args[at]
        if isinstance(path, int) and event != "os.truncate":  # what that needs was told when it was opened to write
            path = _named_by(path)
        place = _place(path, folder if isinstance(folder, int) and folder >= 0 else None)
        if place is not None:
            yield Deed("file", place, place)


def _connected(database: Any) -> Iterator[Deed]:
    """Yield the database that is opened. Nothing tells whether `uri=True` was said: then each reading counts."""
    if not isinstance(database, (str, bytes, os.PathLike)):
        return
    text = os.fsdecode(database)
    names = _written_by_address(text) if text.startswith("file:") else [text]
    for name in names:
        if name not in (":memory:", "") and (place := _place(name, None)) is not None:
            yield Deed("file", place, place)


def _written_by_address(address: str) -> list[str]:
    """Return the files that an address of SQLite lets change, as sqlite.org/uri.html reads it, or taken for a name."""
    path, _, query = address.partition("#")[0].removeprefix("file:").partition("?")
    if path.startswith("//"):
        path = "/" + path[2:].partition("/")[2]
    path = unquote(path, errors="surrogateescape").partition("\0")[0]
    modes = [value for name, value in parse_qsl(query, keep_blank_values=True) if name.partition("\0")[0] == "mode"]
    if path in ("", ":memory:") or modes == ["memory"]:
        return []
    named = [address] if os.path.isdir(os.path.dirname(address) or ".") else []
    return named if modes == ["ro"] else [*named, path]  # of several modes none is trusted


def _named_by(descriptor: int) -> str | None:
    """Return the path of the file that is open as a descriptor, None when it has no name. Linux; elsewhere None."""
    try:
        name = os.readlink(f"/proc/self/fd/{descriptor}")
        return name if name.startswith("/") and os.fstat(descriptor).st_nlink else None
    except OSError:
        return None


def _place(path: Any, folder: int | None) -> str | None:
    """Return the real path of what is changed; None for a descriptor."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        return None
    text = os.fsdecode(path)
    if text == "" or "\0" in text:
        return None
    if folder is not None and not os.path.isabs(text):
        text = os.path.join(f"/proc/self/fd/{folder}", text)
    return os.path.realpath(text)


# ── who did it ──────────────────────────────────────────────────────────────────────────────────────


def users_line(frame: FrameType | None) -> str | None:
    """Return FILE:LINE of the user's code that did it, through whatever library; None when no user's code did."""
    for file, line in _frames(frame):
        if file.startswith(_OURS) and not file.startswith(_EXAMPLES):
            return None
        if not file.startswith(_LIBRARIES):
            return f"{file}:{line}"
    return None


def is_ours(frame: FrameType | None) -> bool:
    """Say whether Milepost itself did it, in a room that writes: no user's function, nor a library's given as one."""
    for file, _ in _frames(frame):
        if file.startswith(_OURS) and not file.startswith(_EXAMPLES):
            return file.startswith(_WRITERS)
        if not file.startswith(_LIBRARIES):
            return False
    return False


def caller(frame: FrameType | None) -> FrameType | None:
    """Return the frame of whoever called Milepost."""
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return frame


def nearest(frame: FrameType | None) -> str:
    """Return FILE:LINE of the code nearest to the event, whoever's it is."""
    file, line = next(_frames(frame), ("", 0))
    return f"{file}:{line}"


def _frames(frame: FrameType | None) -> Iterator[tuple[str, int]]:
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_LISTENERS):
            yield file, frame.f_lineno
        frame = frame.f_back
