"""Of the copies of a store on one machine, one at a time works on a family: the lease of a run, outside the store.

A lease stands in the store, so a copy of the store grants it anew. What keeps the copies apart is a lock in a file
beside the witness, of a byte that the family and the store's file choose: shared, for within one file the lease
decides who is next. The kernel frees it when the process dies. It says nothing where no witness could be kept.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import struct
import sys
from collections.abc import Mapping
from contextlib import suppress

from milepost.errors import RunBusy
from milepost.runtime.witness import file_of
from milepost.stores.contract import Lease, Store

_RANGE = 2**31
"""Bytes that a family has, each for one file with the store; 2**31 families. They lie where nothing is written."""
_SAID_BYTES = 1024
_SAID_PLACES = 1024
"""So many families at once can say who works on them; of two with one place the later one does."""
_FLOCK = "hhqqi"  # type, whence, start, length, process: as fcntl(2) has it on Linux
HINT = (
    "Only one copy of a store goes on with a run. Wait for that process, or stop it; then go on in the copy that is "
    "ahead: `milepost verify RUN` says of the other that it went back."
)


class CopyLock:
    """Keeps the other copies of a store away from one family, until it is dropped or the process dies."""

    def __init__(self, path: str | None, family: str, file: str) -> None:
        self._path, self._family, self._file = path, _number(family), _number(file)
        self._descriptor: int | None = None

    def take(self, lease: Lease, location: str) -> None:
        """Lock, and say who does. Where nothing can be locked nothing is, as with the witness.

        Crash: free. Raises: RunBusy when a process works on the family in another copy; nothing is locked then.
        """
        try:
            self._open()
            other = self._other()
            if other is None:
                self._say(lease, location)
        except OSError:
            self.drop()
            return
        if other is not None:
            busy = self._busy(lease.run_id, other)
            self.drop()
            raise busy

    def drop(self) -> None:
        """Let go, also when a child that was just forked still has our descriptor. Idempotent."""
        if self._descriptor is not None:
            with suppress(OSError):  # nothing was locked
                self._lock(fcntl.F_UNLCK)
            self.close()

    def close(self) -> None:
        """Close our descriptor: in a forked child, whose parent goes on."""
        _held.discard(self)
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _open(self) -> None:
        """Lock our byte; two that open at once see each other, so never both go on. Raises: OSError."""
        if self._path is None or sys.platform != "linux":
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        _held.add(self)
        self._lock(fcntl.F_RDLCK)

    def _lock(self, how: int) -> None:
        assert self._descriptor is not None
        ours = struct.pack(_FLOCK, how, os.SEEK_SET, self._start + self._file, 1, 0)
        fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, ours)

    @property
    def _start(self) -> int:
        return self._family * _RANGE

    def _other(self) -> int | None:
        """Return the number of another file in which somebody works on the family; None when nobody does."""
        assert self._descriptor is not None
        after = self._file + 1
        for begin, end in ((0, self._file), (after, _RANGE)):
            wanted = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, self._start + begin, end - begin, 0)
            found = struct.unpack(_FLOCK, fcntl.fcntl(self._descriptor, fcntl.F_OFD_GETLK, wanted))
            if found[0] != fcntl.F_UNLCK:
                return int(found[2]) - self._start
        return None

    # ── who ─────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _said_at(self) -> int:
        return self._family % _SAID_PLACES * _SAID_BYTES

    def _say(self, lease: Lease, location: str) -> None:
        """Write down who works on the family, for whoever is refused. Crash: what is said is of nobody who is there."""
        assert self._descriptor is not None
        who = {"family": self._family, "file": self._file, "pid": lease.holder.pid, "since": lease.holder.since}
        text = json.dumps({**who, "location": location}, ensure_ascii=False).encode("utf-8", "surrogateescape")
        os.pwrite(self._descriptor, text[:_SAID_BYTES].ljust(_SAID_BYTES), self._said_at)

    def _busy(self, run_id: str, other: int) -> RunBusy:
        assert self._descriptor is not None
        try:
            said = json.loads(os.pread(self._descriptor, _SAID_BYTES, self._said_at))
            if (said["family"], said["file"]) == (self._family, other):
                holder = f"process {said['pid']:d}, in another copy of this store: {said['location']},"
                return RunBusy(run_id=run_id, holder=holder, since=said["since"], hint=HINT)
        except (OSError, ValueError, KeyError, TypeError):
            pass
        holder = "a process of this machine, in another copy of this store,"
        return RunBusy(run_id=run_id, holder=holder, since="some time", hint=HINT)


def copies_of(store: Store, family: str, environ: Mapping[str, str]) -> CopyLock:
    """Return what can keep every other copy of a store away from a family; nobody is kept away yet."""
    return CopyLock(_path(store, environ), family, _file_at(store.location))


def _path(store: Store, environ: Mapping[str, str]) -> str | None:
    witness = file_of(store.store_id, environ)
    return f"{witness}.copies" if witness is not None and store.folder is not None else None


def _file_at(location: str) -> str:
    """Name a file by what it is, whatever it is called: a store that is moved meanwhile stays the same one."""
    try:
        found = os.stat(location)
    except OSError:
        return location
    return f"{found.st_dev} {found.st_ino}"


def _number(of: str) -> int:
    return int.from_bytes(hashlib.sha256(of.encode("utf-8", "surrogateescape")).digest()[:8], "big") % _RANGE


_held: set[CopyLock] = set()


def _close_all_in_child() -> None:
    """In a forked child: the parent's locks are the parent's alone, and end with it."""
    for lock in list(_held):
        lock.close()


os.register_at_fork(after_in_child=_close_all_in_child)
