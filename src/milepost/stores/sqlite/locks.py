"""Lock files: how one process knows that another on this machine is dead.

Each lease has a file of its own, `<hash of run id>.<token>.lock`, locked (flock) by the holder's process. The
kernel frees the lock when that process dies, however it dies. A file that is not there, or cannot be read,
proves nothing.
Called by leases and `doctor`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_TO_LOCK = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class LockFiles:
    """The lock files of one store, and those of them this object holds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._held: dict[str, int] = {}

    def take(self, run_id: str, token: int) -> None:
        """Create and lock the file of a lease. Crash: a free file nobody points at. Raises: OSError."""
        path = self._path(run_id, token)
        try:
            handle = os.open(path, _TO_LOCK, 0o600)
        except FileNotFoundError:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            handle = os.open(path, _TO_LOCK, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            os.close(handle)
            raise
        self._held[path] = handle

    def is_free(self, run_id: str, token: int) -> bool:
        """Tell whether the process that took this lock is gone: its file is there and nobody locks it."""
        try:
            handle = os.open(self._path(run_id, token), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except (FileNotFoundError, PermissionError):
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(handle)
        return True

    def drop(self, run_id: str, token: int) -> None:
        """Remove the file of a lease that is over, and its lock if it is ours. Crash: a free file is left."""
        path = self._path(run_id, token)
        with suppress(OSError):  # a file left behind is harmless: no row points at its token any more
            os.unlink(path)
        self._let_go(path)

    def free(self, run_id: str, token: int) -> None:
        """Let go of a lock and leave its file: if the lease was committed after all, its holder is gone."""
        self._let_go(self._path(run_id, token))

    def drop_all(self) -> None:
        """Let go of every lock of ours; the files stay, free, and say that their holder is gone."""
        while self._held:
            os.close(self._held.popitem()[1])

    def leftovers(self, wanted: Iterator[tuple[str, int]]) -> list[Path]:
        """Return the files in the folder that belong to none of the wanted leases."""
        keep = {self._path(*lease) for lease in wanted}
        return [path for path in sorted(self.folder.glob("*.lock")) if str(path) not in keep]

    def _let_go(self, path: str) -> None:
        handle = self._held.pop(path, None)
        if handle is not None:
            os.close(handle)

    def _path(self, run_id: str, token: int) -> str:
        name = hashlib.sha256(run_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return f"{self.folder}/{name}.{token}.lock"
