"""Foreign errors of this package, translated once: sqlite3 and the operating system to StoreUnavailable."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from milepost.errors import StoreUnavailable


def reason_of(error: BaseException) -> str:
    """Say what went wrong: the name SQLite or the system has for it, and its text."""
    if isinstance(error, OSError):
        return f"{os.strerror(error.errno)} ({error.filename})" if error.errno else str(error)
    name = getattr(error, "sqlite_errorname", None)
    return f"{name}: {error}" if name else f"{type(error).__name__}: {error}"


CREATE = "create"
"""What is done where no store is yet: there is nothing to resume when it fails."""
NO_STORE_YET = "Free space, descriptors or permissions, then type it again: no store was made, and nothing ran."
LOCKED = (
    "Another process keeps it locked: one that was stopped in the midst of a commit (SIGSTOP, a debugger) does. "
    "`fuser -v STORE` names who has it open: let that one go on or kill it, then `milepost resume RUN`."
)

_FULL = frozenset({"SQLITE_FULL", "SQLITE_IOERR_SHMSIZE", "SQLITE_IOERR_SHMOPEN", "SQLITE_IOERR_WRITE"})


def is_full(error: StoreUnavailable) -> bool:
    """Say whether a store could not be opened because there is no room: SQLite wants 32 KiB beside it even to read."""
    return getattr(error.__cause__, "sqlite_errorname", None) in _FULL


def unavailable(location: str, operation: str, error: BaseException) -> StoreUnavailable:
    """Return the error a caller sees when SQLite or the file system refuses."""
    reason, hint = reason_of(error), {}
    if reason.startswith("SQLITE_BUSY"):
        hint = {"hint": LOCKED}
    elif operation == CREATE:
        hint = {"hint": NO_STORE_YET}
    return StoreUnavailable(location=location, operation=operation, reason=reason, **hint)


@contextmanager
def translated(location: str, operation: str) -> Iterator[None]:
    """Turn sqlite3 and OS errors inside into StoreUnavailable, cause kept."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise unavailable(location, operation, error) from error
