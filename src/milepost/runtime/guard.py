"""The guard of shadow runs: code that is no effect changes nothing outside, unless it is declared in `reads=[…]`.

An audit hook, in this process for good once a shadow run was here. It raises in the code that tries, so that nothing
happens; whatever that code swallows, the bodies around it do not come through. It finds mistakes; it is no sandbox:
`outward` says what no event tells. Installed by `guarded`, which every body passes.
"""

from __future__ import annotations

import functools
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

from milepost.errors import UndeclaredWrite
from milepost.protocol.reads import Read
from milepost.runtime.active import ActiveRun
from milepost.runtime.outward import EVENTS, Deed, deeds, is_ours, nearest, users_line
from milepost.runtime.scope import Scope, current, on_a_loop

_DEVICES = frozenset(["/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/stdout", "/dev/stderr"])
_IMPORT = "<frozen importlib"


class Guard:
    """What the hook knows: whose each thread is, each run's temporary folder, the addresses of declared hosts."""

    def __init__(self) -> None:
        self._threads: WeakKeyDictionary[threading.Thread, Scope] = WeakKeyDictionary()
        self._bodies: dict[int, list[Scope]] = {}  # under way in a thread, by its id; the innermost is the last
        self._temporary: WeakKeyDictionary[ActiveRun, str] = WeakKeyDictionary()
        self._addresses: dict[str, set[str]] = {}
        self._busy = threading.local()

    def heard(self, event: str, args: tuple[Any, ...]) -> None:
        """Judge one audit event. Raises: UndeclaredWrite, in the code that caused it."""
        if event not in EVENTS:
            return
        scope = self._scope()
        if scope is None or not scope.run.snapshot.is_shadow or getattr(self._busy, "here", False):
            return
        self._busy.here = True
        try:
            self._judge(event, args, scope)
        finally:
            self._busy.here = False

    def _scope(self) -> Scope | None:
        """Return whose code runs here, in a context of its own too: a thread belongs to the body that runs in it, else
        to whoever started it.
        """
        return current.get() or self._body() or self._threads.get(threading.current_thread())

    def _body(self) -> Scope | None:
        """Return the body under way in this thread; of a loop the first of a shadow run, which is its plan."""
        bodies = self._bodies.get(threading.get_ident())
        if not bodies:
            return None
        if not on_a_loop():
            return bodies[-1]
        return next((scope for scope in bodies if scope.run.snapshot.is_shadow), None)

    def begin(self, run: ActiveRun) -> None:
        """Guard a shadow run from now on. Where its temporary files may be stays as it is now."""
        self._temporary[run] = os.path.realpath(tempfile.gettempdir())

    def entered(self, scope: Scope) -> None:
        self._bodies.setdefault(threading.get_ident(), []).append(scope)

    def left(self, scope: Scope) -> None:
        bodies = self._bodies.get(threading.get_ident(), [])
        if scope in bodies:
            bodies.remove(scope)
        if not bodies:
            self._bodies.pop(threading.get_ident(), None)

    def _judge(self, event: str, args: tuple[Any, ...], scope: Scope) -> None:
        frame = sys._getframe(2)
        for deed in deeds(event, args):
            if not is_ours(frame) and not self._is_allowed(deed, scope, frame):
                raise self._refused(scope, _said(deed), frame)

    def started(self, thread: threading.Thread) -> None:
        """Remember whose a thread is that is about to start."""
        scope = self._scope()
        if scope is not None and scope.run.snapshot.is_shadow:
            self._threads[thread] = scope

    def refuse(self, what: str, frame: FrameType | None) -> None:
        """Refuse what would send outside the protocol, if a shadow run does it. Raises: UndeclaredWrite."""
        scope = self._scope()
        if scope is not None and scope.run.snapshot.is_shadow:
            raise self._refused(scope, what, frame)

    def _refused(self, scope: Scope, what: str, frame: FrameType | None) -> UndeclaredWrite:
        who = f"{scope.inside} of {scope.path}" if scope.inside else scope.path or "the plan"
        line = users_line(frame) or nearest(frame)
        error = UndeclaredWrite(run_id=scope.run.run_id, path=scope.path, who=who, what=what, line=line)
        scope.blocked(error)
        return error

    # ── what is allowed ─────────────────────────────────────────────────────────────────────────────

    def _is_allowed(self, deed: Deed, scope: Scope, frame: FrameType | None) -> bool:
        declared = [read for read in _declared(scope) if read.kind == _KINDS[deed.kind]]
        match deed.kind:
            case "file":
                return self._is_own_file(deed.place, scope, frame) or any(_below(deed.place, r) for r in declared)
            case "process":
                return any(os.path.basename(deed.place) == read.name for read in declared)
            case "name":
                return self._may_look_up(deed.place, declared)
            case "socket":
                return self._may_reach(deed, scope, declared)
        return False

    def _is_own_file(self, place: str, scope: Scope, frame: FrameType | None) -> bool:
        started = scope.run.snapshot.started
        own = scope.run.options.folder or (started and started.folder)
        folders = [self._temporary.get(scope.run), own and os.path.realpath(own)]
        if place in _DEVICES or any(folder and _is_in(place, folder) for folder in folders):
            return True
        return "__pycache__" in place and nearest(frame).startswith(_IMPORT)

    def _may_look_up(self, host: str, declared: list[Read]) -> bool:
        if _is_address(host) or host in ("localhost", socket.gethostname()):
            return True  # asks nobody; reaching it is judged when it is reached
        named = [read for read in declared if _is_named(host, read)]
        if named:
            self._learn(host)
        return bool(named)

    def _may_reach(self, deed: Deed, scope: Scope, declared: list[Read]) -> bool:
        if deed.port is None:
            local = [read for read in _declared(scope) if read.kind == "path"]
            return any(_below(os.path.realpath(deed.place), read) for read in local)
        fitting = [read for read in declared if read.port in (None, deed.port)]
        return any(_is_named(deed.place, read) or self._has_address(read, deed.place) for read in fitting)

    def _has_address(self, read: Read, address: str) -> bool:
        """Say whether a declared host has this address: as it was looked up here, else as it is looked up now."""
        if read.name.startswith("*."):
            return any(address in found for host, found in self._addresses.items() if _is_named(host, read))
        if address not in self._addresses.get(read.name, ()):
            self._learn(read.name)
        return address in self._addresses.get(read.name, ())

    def _learn(self, host: str) -> None:
        with suppress(OSError):
            found = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
            self._addresses.setdefault(host, set()).update(found)


_KINDS = {"file": "path", "process": "program", "name": "host", "socket": "host", "interpreter": "program"}


def _declared(scope: Scope) -> Iterator[Read]:
    """Yield what the code running in a scope may reach: its step's reads, those of the steps around it, the task's."""
    yield from scope.run.task.reads
    around: Scope | None = scope
    while around is not None and around.call is not None:
        yield from getattr(around.call.spec, "reads", ())
        around = around.call.scope


def _said(deed: Deed) -> str:
    match deed.kind:
        case "file":
            return f"writing {deed.what}"
        case "name":
            return f"a socket to {deed.what} (its look-up)"
        case "socket":
            return f"a socket to {deed.what}"
    return f"starting {deed.what}"


def _is_in(place: str, folder: str) -> bool:
    return place == folder or place.startswith(folder.rstrip(os.sep) + os.sep)


def _below(place: str, read: Read) -> bool:
    return _is_in(place, os.path.realpath(os.path.expanduser(read.name)))


def _is_named(host: str, read: Read) -> bool:
    name, host = read.name, host.lower().rstrip(".")
    return host.endswith(name[1:]) if name.startswith("*.") else host == name


def _is_address(host: str) -> bool:
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def follow_threads(guard: Guard) -> None:
    """Hear of each thread before it starts: Python 3.11 has no event for it, and a thread knows no parent."""
    start = threading.Thread.start

    @functools.wraps(start)
    def followed(thread: threading.Thread) -> None:
        guard.started(thread)
        start(thread)

    threading.Thread.start = followed  # type: ignore[method-assign, assignment]  # no other way
