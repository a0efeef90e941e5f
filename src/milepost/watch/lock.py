"""One watch for each store: a lock file beside it, which the kernel frees when its holder dies, however it dies."""

from __future__ import annotations

import fcntl
import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from milepost.errors import StoreUnavailable, WatchRunning


@contextmanager
def only_watch(path: Path, location: str, since: str) -> Iterator[None]:
    """Hold the lock meanwhile. Raises: WatchRunning naming who holds it; StoreUnavailable.

    Crash: a free file that names a process which is gone.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StoreUnavailable(location=location, operation="watch", reason=f"{path}: {error.strerror}") from error
    try:
        _take(handle, location)
        me = json.dumps({"pid": os.getpid(), "host": platform.node(), "since": since}).encode()
        os.ftruncate(handle, 0)
        os.pwrite(handle, me, 0)
        yield
    finally:
        os.close(handle)


def _take(handle: int, location: str) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder, since = _named(os.pread(handle, 1000, 0))
        raise WatchRunning(location=location, holder=holder, since=since) from error


def _named(said: bytes) -> tuple[str, str]:
    try:
        found = json.loads(said)
        return f"process {found['pid']} on {found['host']}", str(found["since"])
    except (ValueError, TypeError, KeyError):
        return "another process", "an unknown time"  # it has taken the lock and not said who it is yet
