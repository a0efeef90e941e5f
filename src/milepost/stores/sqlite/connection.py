"""Connections to the file of a store: made by a factory, settings asserted, writers of a process in turn.

`Writer` holds the only connection that writes and hands it out in turns; `Reader` the only one that reads.
Knows no run and no statement of `queries.sql`. Called by the store, the committer and the opening.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, TypeVar, cast

from milepost.errors import StoreLinked, StoreUnavailable
from milepost.stores.sqlite.faults import translated, unavailable
from milepost.stores.sqlite.open_files import OPEN_FILES, WAL_LOST, file_id, forked, id_of, refuse_linked, wal_lost

BUSY_S = 15.0
"""Seconds to wait for another process's transaction before a write fails."""
CACHE_KIB = 16 * 1024
"""Page cache of the writing connection; digests land anywhere in their index."""
CHECKPOINT_PAGES = 400
"""Pages in the WAL (of 4 KiB) at which SQLite moves them to the file. A WAL that still grows makes each flush dearer,
and more pages than these spare a long run nothing: hot ones move once in a hundred commits, not in each."""
READING_CACHE_KIB = 1024
"""Page cache of the reading connection: a journal is read once, and memory for all of it costs more than its pages."""
PAGE_ROWS = 256
"""Rows that are fetched at once where there may be many."""
WAL_KEPT_BYTES = 64 * 1024 * 1024
"""A WAL that grew behind a long reader is cut back to this."""

Connect: TypeAlias = Callable[[str], sqlite3.Connection]
R = TypeVar("R")


def connect_sqlite(path: str) -> sqlite3.Connection:
    """Open an existing database file with the standard library; never creates one."""
    uri = f"{Path(path).absolute().as_uri()}?mode=rw"
    return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=BUSY_S)


def connect_to_read(path: str) -> sqlite3.Connection:
    """Open a database file that this process cannot write; nothing is created beside it.

    SQLite wants a `-shm` file beside a WAL database. Where it can make none, the file is read as it is, which is the
    whole of it only while no `-wal` holds newer commits.

    Raises: StoreUnavailable when one does, sqlite3.Error.
    """
    uri = f"{Path(path).absolute().as_uri()}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=BUSY_S)
    try:
        connection.execute("SELECT 1 FROM sqlite_master")
    except sqlite3.OperationalError as error:
        connection.close()
        wal = Path(f"{path}-wal")
        if wal.exists() and wal.stat().st_size:
            reason = f"the newest commits are in {wal}, which cannot be read here; copy both to a folder you can write"
            raise StoreUnavailable(location=path, operation="open", reason=reason) from error
        connection = sqlite3.connect(f"{uri}&immutable=1", uri=True, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def set_up(connection: sqlite3.Connection, location: str) -> None:
    """Set what durability rests on, and fetch it: SQLite may keep another mode in silence.

    Raises: StoreUnavailable naming the setting that did not take.
    """
    connection.execute(f"PRAGMA busy_timeout = {int(BUSY_S * 1000)}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA temp_store = MEMORY")  # no descriptor is needed in the middle of a commit
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    connection.execute(f"PRAGMA journal_size_limit = {WAL_KEPT_BYTES}")
    for name, expected, found in settings(connection):
        if expected != found:
            reason = f"PRAGMA {name} should be {expected}, is {found}"
            raise StoreUnavailable(location=location, operation="open", reason=reason)


def settings(connection: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """Return the settings a store rests on: name, expected, found."""
    expected = (("journal_mode", "wal"), ("synchronous", "2"), ("foreign_keys", "1"))
    return [(name, value, _pragma(connection, name)) for name, value in expected]


def _pragma(connection: sqlite3.Connection, name: str) -> str:
    row = connection.execute(f"PRAGMA {name}").fetchone()
    return str(row[0]).lower() if row else "nothing"


class Writer:
    """The connection that writes. One transaction at a time, begun IMMEDIATE."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.connection = connection
        self.location = str(path)
        # Both are taken by `with` alone: no signal is heard between the two, so none leaves them taken.
        self.gate = threading.Lock()  # held by who waits for the turn, so the one that leaves cannot slip in before it
        self.turn = threading.Lock()  # held by whoever calls begin, commit and roll_back
        self._file = file_id(self.location)
        self._wal = f"{os.path.realpath(self.location)}-wal"
        wal = _stat_if_there(self._wal)
        self._wal_file = None if wal is None else id_of(wal)
        self._flushes = True

    def transaction(self, operation: str, work: Callable[[sqlite3.Connection], R], *, flushes: bool = True) -> R:
        """Begin, do some work, commit; roll back on any exception, also on that of a signal handler.

        What does not flush is visible to all, but on the disk only with the next commit that does. For leases: every
        run takes one and gives it back, and a flush for each costs as much as a step. No record is ever durable
        without the lease it was written under, because its commit flushes the whole WAL; and the holder of a lease
        that a power cut undoes was ended by the same power cut.
        No context manager: a signal is heard between the lines of contextlib, with all of this taken.

        Crash: all of it or nothing; without a flush nothing when the machine loses power.
        Raises: StoreUnavailable; when COMMIT itself failed it is *cannot tell*.
        """
        with translated(self.location, operation), self.gate, self.turn:
            try:
                self.begin(flushes=flushes)
                done = work(self.connection)
                self.commit()
            except BaseException:
                self.roll_back()
                raise
            finally:
                if not self._flushes:
                    self._flush_again()
            return done

    def begin(self, *, flushes: bool = True) -> None:
        """Begin a transaction that is flushed to the disk at its end, or is not."""
        if self.connection.in_transaction:  # whoever rolled back was interrupted
            self.roll_back()
        if not flushes:
            self._flushes = False
            self.connection.execute("PRAGMA synchronous = NORMAL")
        elif not self._flushes:  # whoever switched it off was interrupted before it was on again
            self._flush_again()
        self.connection.execute("BEGIN IMMEDIATE")

    def _flush_again(self) -> None:
        self.connection.execute("PRAGMA synchronous = FULL")
        self._flushes = True

    def commit(self) -> None:
        """Commit, and see that the file and its WAL are still where readers look for them, and there alone.

        When the WAL is not, nothing more is written here and the connection stays open: closing it would write what
        it still knows of the old WAL over what others have written since.

        Crash: all of the transaction or nothing. Raises: sqlite3.Error, OSError: cannot tell.
        """
        self.connection.execute("COMMIT")
        file, wal = os.stat(self.location), _stat_if_there(self._wal)
        if id_of(file) != self._file:
            raise FileNotFoundError(2, "the file was replaced", self.location)
        if file.st_nlink > 1 or (wal is not None and wal.st_nlink > 1):
            _refuse_linked(self.location)
        if (None if wal is None else id_of(wal)) != self._wal_file:
            OPEN_FILES.bar(self._file, wal_lost)
            self.connection = abandoned(self.connection, _wal_lost)
            raise _wal_lost()

    def roll_back(self) -> None:
        """Leave the transaction, whatever state it is in."""
        try:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
        except sqlite3.Error:
            # The error that led here is the one to report; the next BEGIN fails if this one mattered.
            return

    def forget_in_child(self) -> None:
        """Let a forked child neither write through the parent's connection nor close it."""
        self.gate, self.turn = threading.Lock(), threading.Lock()
        self.connection = abandoned(self.connection, lambda: forked(self.location, "use"))

    def close(self) -> None:
        with self.turn:
            self.connection.close()


def _stat_if_there(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _refuse_linked(location: str) -> None:
    """Refuse to go on with a file that got another name. Raises: OSError."""
    try:
        refuse_linked(location)
    except StoreLinked as error:
        raise OSError(f"{error.what} got another name (a hard link), under which it must never be opened") from error


def _wal_lost() -> sqlite3.Error:
    return sqlite3.OperationalError(WAL_LOST)


class Reader:
    """The connection that reads. Sees what is committed, blocks no writer."""

    def __init__(self, connection: sqlite3.Connection, location: str) -> None:
        self.connection = connection
        self.location = location
        self.lock = threading.Lock()  # held by whoever uses the connection
        connection.execute("PRAGMA query_only = ON")
        connection.execute(f"PRAGMA cache_size = -{READING_CACHE_KIB}")

    def all(self, operation: str, sql: str, values: Sequence[Any] | dict[str, Any] = ()) -> list[Any]:
        """Return all rows of one statement, from one snapshot. Raises: StoreUnavailable."""
        try:
            with self.lock:
                return self.connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise unavailable(self.location, operation, error) from error

    def pages(self, operation: str, sql: str, values: Sequence[Any]) -> Iterator[list[Any]]:
        """Yield all rows of one statement, from one snapshot, PAGE_ROWS at a time. Raises: StoreUnavailable."""
        with translated(self.location, operation), self.lock:
            cursor = self.connection.execute(sql, values)
            while page := cursor.fetchmany(PAGE_ROWS):
                yield page

    def forget_in_child(self) -> None:
        """Let a forked child neither read through the parent's connection nor close it."""
        self.lock = threading.Lock()
        self.connection = abandoned(self.connection, lambda: forked(self.location, "use"))

    def one(self, operation: str, sql: str, values: Sequence[Any] | dict[str, Any] = ()) -> Any:
        """Return the first row of one statement, or None. Raises: StoreUnavailable."""
        rows = self.all(operation, sql, values)
        return rows[0] if rows else None

    def close(self) -> None:
        with self.lock:
            self.connection.close()


class _Unusable:
    """Stands where a connection would: of its parent's in a forked child, one that writes in a read-only store."""

    in_transaction = False

    def __init__(self, why: Callable[[], Exception]) -> None:
        self._why = why

    def execute(self, *_: object) -> NoReturn:
        raise self._why()

    executemany = execute

    def close(self) -> None:
        """Nothing of ours is open."""


def abandoned(connection: sqlite3.Connection, why: Callable[[], Exception]) -> sqlite3.Connection:
    """Return a stand-in that raises `why()`, and keep the connection from ever being closed by this process.

    SQLite forbids to close a connection that was carried across a fork: the child would release locks and
    might delete the WAL the parent writes to (https://www.sqlite.org/howtocorrupt.html, 2.6).
    """
    import ctypes  # only who is in trouble pays for it

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
    return unusable(why)


def unusable(why: Callable[[], Exception]) -> sqlite3.Connection:
    """Return a stand-in whose every statement raises `why()`."""
    return cast(sqlite3.Connection, _Unusable(why))
