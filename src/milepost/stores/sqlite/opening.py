"""Create a store's file, refuse what is not one, and bring its schema up to date.

A new file is built under another name and linked into place complete, so nobody ever opens half a store.
Refusals change nothing. Called by SqliteStore, and by `locate` for what is a store.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from milepost.artifacts.durable import make_folder, sync
from milepost.errors import ForeignDatabase, StoreMissing, StoreTooNew, StoreUnavailable
from milepost.stores.sqlite.connection import Connect, set_up
from milepost.stores.sqlite.faults import CREATE, translated
from milepost.stores.sqlite.open_files import OPEN_FILES, refuse_linked
from milepost.stores.sqlite.queries import SQL

APPLICATION_ID = 0x4D494C45
"""`MILE` in the header of the file (offset 68, big-endian): this database is ours."""
MIGRATIONS = Path(__file__).parent / "migrations"
_HEADER_SIZE = 100


def migrations() -> list[tuple[int, str, str]]:
    """Return the known migrations in order: number, name, script."""
    files = sorted(MIGRATIONS.glob("[0-9]*.sql"))
    return [(int(file.stem[:4]), file.stem[5:], file.read_text("utf-8")) for file in files]


def schema_known() -> int:
    """Return the newest schema this version can work with."""
    return migrations()[-1][0]


def statements(script: str) -> Iterator[str]:
    """Split a script into its statements; sqlite3's own `executescript` would commit on the way."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def prepare(path: Path, *, create: bool, connect: Connect) -> None:
    """See to it that there is a store at `path`, create one if asked.

    Crash: no store, or a whole one (and perhaps a `.new` file beside it, which `doctor` names).
    Raises: StoreMissing, ForeignDatabase, StoreLinked, StoreUnavailable.
    """
    if not path.exists():
        if not create:
            raise StoreMissing(location=path)
        _create(path, connect)
    _refuse_foreign(path)
    with translated(str(path), "open"):
        refuse_linked(path)
    if create and (place := unwritable(path)) is not None:
        raise not_writable(path, "open", place)


def migrate(connection: sqlite3.Connection, location: str, *, last: int | None = None) -> None:
    """Apply what is missing up to `last`, each migration and its record in one transaction.

    Crash: the schema of before or after a migration, never between. Raises: StoreTooNew, sqlite3.Error.
    """
    found = schema_of(connection, location)
    for number, name, script in migrations():
        if found < number <= (last or number):
            connection.execute("BEGIN IMMEDIATE")
            if schema_of(connection, location) < number:  # another process may have been faster
                _apply(connection, number, name, script)
            connection.execute("COMMIT")


def _apply(connection: sqlite3.Connection, number: int, name: str, script: str) -> None:
    for statement in statements(script):
        connection.execute(statement)
    connection.execute(SQL["record_migration"], (number, name))


def schema_of(connection: sqlite3.Connection, location: str) -> int:
    """Return the schema a store has, 0 for none yet. Raises: StoreTooNew."""
    tables = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").fetchone()
    found = int(connection.execute(SQL["schema_version"]).fetchone()[0]) if tables else 0
    if found > schema_known():
        raise StoreTooNew(location=location, found=found, expected=schema_known())
    return found


def _create(path: Path, connect: Connect) -> None:
    """Build a store beside `path` and link it into place; whoever comes second uses the first one's.

    Crash: nothing at `path`, or a whole store.
    """
    with translated(str(path), CREATE):
        make_folder(path.parent)
        name = f"{path}.{os.urandom(8).hex()}.new"
        os.close(os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        try:
            _build(name, connect)
            with suppress(FileExistsError):
                os.link(name, path)
        finally:
            for suffix in ("", "-wal", "-shm"):
                Path(name + suffix).unlink(missing_ok=True)
        sync(path.parent)


def _build(name: str, connect: Connect) -> None:
    with OPEN_FILES.used(Path(name)), closing(connect(name)) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        set_up(connection, name)
        migrate(connection, name)
        # Everything must be in the file itself: its WAL does not move with it.
        busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise StoreUnavailable(location=name, operation=CREATE, reason="somebody reads the new file")
    sync(name)


def _refuse_foreign(path: Path) -> None:
    with translated(str(path), "open"):
        if not path.is_file():
            raise ForeignDatabase(location=path, reason="it is not a file")
        header = OPEN_FILES.first_bytes(path, _HEADER_SIZE)
    if header is None:
        return  # it is open here as a store
    if not header.startswith(b"SQLite format 3\x00"):
        raise ForeignDatabase(location=path, reason="it is not an SQLite database" if header else "it is empty")
    found = int.from_bytes(header[68:72], "big")
    if found != APPLICATION_ID:
        raise ForeignDatabase(location=path, reason=f"application_id is {found:#x}, not {APPLICATION_ID:#x}")


def is_store(path: Path) -> bool:
    """Say whether a file is a Milepost store, by its header."""
    try:
        _refuse_foreign(path)
    except (ForeignDatabase, StoreUnavailable):
        return False
    return True


def unwritable(path: Path) -> Path | None:
    """Return what keeps this process from writing the store at `path`: its file or its folder. None: nothing."""
    return next((place for place in (path, path.parent) if not os.access(place, os.W_OK)), None)


def not_writable(path: Path, operation: str, place: Path) -> StoreUnavailable:
    """Return the error of whoever would write to a store that can only be read."""
    return StoreUnavailable(location=path, operation=operation, reason=f"{place} is not writable")
