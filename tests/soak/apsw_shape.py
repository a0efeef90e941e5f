"""A connection of apsw in the shape our store knows from `sqlite3`, on a file system (VFS) that fails when told to.

The errors are those that `sqlite3` raises for the same result codes. Used by the harness `vfs`.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import apsw

NAME = "faulty"


class FaultyFiles(apsw.VFS):
    """Counts the operations of every file that write, sync or truncate; at the `at`-th the disk fails."""

    def __init__(self) -> None:
        super().__init__(NAME, "")
        self._lock = threading.Lock()
        self.well()

    def well(self) -> None:
        """Count from one and fail no more."""
        self.at, self.counted, self.onward, self.kind = 0, 0, False, ""

    def fails_at(self, at: int, kind: str, *, onward: bool) -> None:
        """Fail the operation of this number: `ioerr`, `full` or `torn`; with `onward` every later one, too."""
        self.well()
        self.at, self.kind, self.onward = at, kind, onward

    def is_due(self) -> bool:
        with self._lock:
            self.counted += 1
            return bool(self.at) and (self.counted == self.at or (self.onward and self.counted > self.at))

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return FaultyFile(self, name, flags)


class FaultyFile(apsw.VFSFile):
    def __init__(self, files: FaultyFiles, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._files = files

    def xWrite(self, data: bytes, offset: int) -> None:
        if self._files.is_due():
            if self._files.kind == "torn":
                super().xWrite(data[: len(data) // 2], offset)
            self._fail()
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> bool:
        if self._files.is_due():
            self._fail()
        return super().xSync(flags)

    def xTruncate(self, size: int) -> None:
        if self._files.is_due():
            self._fail()
        super().xTruncate(size)

    def _fail(self) -> None:
        raise apsw.FullError("disk full") if self._files.kind == "full" else apsw.IOError("disk I/O error")


ERRORS: tuple[tuple[type[apsw.Error], type[sqlite3.Error]], ...] = (
    (apsw.ConstraintError, sqlite3.IntegrityError),
    (apsw.MismatchError, sqlite3.IntegrityError),
    (apsw.CorruptError, sqlite3.DatabaseError),
    (apsw.NotADBError, sqlite3.DatabaseError),
    (apsw.Error, sqlite3.OperationalError),
)


def translated(error: apsw.Error) -> sqlite3.Error:
    found: sqlite3.Error = next(theirs for ours, theirs in ERRORS if isinstance(error, ours))(str(error))
    found.sqlite_errorname = f"SQLITE_{type(error).__name__.removesuffix('Error').upper()}"
    return found


class Rows:
    """What a statement returned, all of it."""

    def __init__(self, rows: list[Any], rowcount: int) -> None:
        self._rows, self.rowcount = iter(rows), rowcount

    def fetchall(self) -> list[Any]:
        return list(self._rows)

    def fetchone(self) -> Any:
        return next(self._rows, None)

    def __iter__(self) -> Iterable[Any]:
        return self._rows


class Connection:
    """A connection to an existing file, in autocommit mode."""

    def __init__(self, path: str) -> None:
        try:
            self._inner = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE, vfs=NAME)
        except apsw.Error as error:
            raise translated(error) from error

    @property
    def in_transaction(self) -> bool:
        return bool(self._inner.in_transaction)

    def execute(self, sql: str, values: Sequence[Any] | dict[str, Any] = ()) -> Rows:
        try:
            rows = self._inner.execute(sql, values).fetchall()
        except apsw.Error as error:
            raise translated(error) from error
        return Rows(rows, self._inner.changes())

    def executemany(self, sql: str, many: Iterable[Sequence[Any]]) -> Rows:
        return Rows([], sum(self.execute(sql, values).rowcount for values in many))

    def close(self) -> None:
        try:
            self._inner.close()
        except apsw.Error as error:
            raise translated(error) from error
