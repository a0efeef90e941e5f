"""Which files this process has open with SQLite, and which the process had open that it was forked from.

SQLite's locks are those of POSIX, and SQLite keeps one list of them per process. So closing any other descriptor of an
open file drops its locks, and a forked child has the list without the locks: either way another process may delete
the WAL under us, with every commit in it (https://www.sqlite.org/howtocorrupt.html, 2.2 and 2.6).
Called by the store and the opening.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import TypeAlias

from milepost.errors import StoreLinked, StoreUnavailable

FileId: TypeAlias = tuple[int, int]
"""Device and inode: as SQLite knows files, whatever their names."""
Refusal: TypeAlias = Callable[[str, str], StoreUnavailable]
"""Makes the error of whoever opens a barred file, from its location and the operation."""
WAL_LOST = (
    "its -wal was deleted while it was open here, as happens when this process also reads or copies it with open()"
)


def file_id(path: str | Path) -> FileId:
    """Return what a file is known by. Raises: OSError."""
    return id_of(os.stat(path))


def id_of(found: os.stat_result) -> FileId:
    return found.st_dev, found.st_ino


def refuse_linked(location: str | Path) -> None:
    """Refuse a store of which a file has another name: each name has a WAL of its own, and only one is right.

    A file that is being made, or was when its maker died, has a `.new` name besides, which nobody opens.
    Raises: StoreLinked, OSError.
    """
    real = Path(os.path.realpath(location))
    for file in (real, *(Path(f"{real}{suffix}") for suffix in ("-wal", "-shm"))):
        with suppress(FileNotFoundError):
            if file.stat().st_nlink > 1:
                making = sum(map(file.samefile, real.parent.glob(f"{escape(real.name)}.*.new")))  # before it is counted
                count = file.stat().st_nlink - making
                if count > 1:
                    raise StoreLinked(location=location, what=file.name, count=count)


class Use:
    """One store, or one making of a store, that has connections to a file."""

    __slots__ = ("file",)

    def __init__(self, file: FileId) -> None:
        self.file = file


class OpenFiles:
    """The files SQLite has open here. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may open a store, too
        self._uses: set[Use] = set()
        self._barred: dict[FileId, Refusal] = {}

    def begin(self, path: Path) -> Use:
        """Announce connections to a file, before the first. Raises: StoreUnavailable when it is barred, OSError."""
        use = Use(file_id(path))
        with self._lock:
            if use.file in self._barred:
                raise self._barred[use.file](str(path), "open")
            self._uses.add(use)
        return use

    def end(self, use: Use) -> None:
        """Say that every connection of a use is closed. Idempotent."""
        with self._lock:
            self._uses.discard(use)

    @contextmanager
    def used(self, path: Path) -> Iterator[None]:
        """Announce connections that are closed at the end."""
        use = self.begin(path)
        try:
            yield
        finally:
            self.end(use)

    def first_bytes(self, path: Path, size: int) -> bytes | None:
        """Return the beginning of a file; None when it is open here, for reading it would end with its locks."""
        with self._lock:
            file = file_id(path)
            if any(use.file == file for use in self._uses):
                return None
            with path.open("rb") as opened:
                return opened.read(size)

    def bar(self, file: FileId, why: Refusal) -> None:
        """Never open a file here again: SQLite knows things of it that are not so, and nothing makes it forget."""
        with self._lock:
            self._barred[file] = why

    def forget_in_child(self) -> None:
        """In a forked child: what the parent had open is never opened here."""
        self._lock = threading.RLock()
        self._barred.update((use.file, forked) for use in self._uses)
        self._uses.clear()


OPEN_FILES = OpenFiles()
os.register_at_fork(after_in_child=OPEN_FILES.forget_in_child)


def forked(location: str, operation: str) -> StoreUnavailable:
    """Return the error of a process that cannot use a store since it was forked from one that had it open."""
    return StoreUnavailable(
        location=location,
        operation=operation,
        reason="this process was forked from one that had it open, and SQLite works in that one only",
        hint="Start a new process instead (subprocess, multiprocessing's 'spawn'), or open stores after the fork only.",
    )


def wal_lost(location: str, operation: str) -> StoreUnavailable:
    """Return the error of a process under which the WAL was deleted."""
    hint = "Find what in this process opens the file or deletes its -wal; then `milepost resume RUN` in a new process."
    return StoreUnavailable(location=location, operation=operation, reason=WAL_LOST, hint=hint)
