"""Opening, finding and refusing: what is not a store stays as it was, what is created is whole and private."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from store_rows import batch, begin

from milepost.errors import ForeignDatabase, MilepostError, StoreMissing, StoreUnavailable
from milepost.stores.locate import belongs_to_store, locate, open_store
from milepost.stores.sqlite.connection import connect_sqlite
from milepost.stores.sqlite.store import SqliteStore


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_store_is_private_and_nothing_is_left_of_its_making(tmp_path: Path) -> None:
    store = open_store(create=True, start=tmp_path, environ={})
    folder = tmp_path / ".milepost"
    assert (mode(folder), mode(folder / "store.sqlite")) == (0o700, 0o600)
    store.close()
    assert [path.name for path in folder.iterdir()] == ["store.sqlite"]
    assert store.location == str(folder / "store.sqlite")


def test_a_store_keeps_its_id(tmp_path: Path) -> None:
    first, other = (SqliteStore(tmp_path / name, create=True) for name in ("a.sqlite", "b.sqlite"))
    again = SqliteStore(tmp_path / "a.sqlite", create=False)
    assert first.store_id == again.store_id != other.store_id
    for store in (first, other, again):
        store.close()


def test_of_many_creators_all_get_the_same_store(tmp_path: Path) -> None:
    found: list[str] = []

    def create() -> None:
        store = SqliteStore(tmp_path / "s" / "store.sqlite", create=True)
        found.append(store.store_id)
        store.close()

    threads = [threading.Thread(target=create) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert len(set(found)) == 1


def test_settings_are_fetched_not_only_set(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "store.sqlite", create=True)) as store:
        findings = {finding.check: finding.found for finding in store.check()}
    assert (findings["journal_mode"], findings["synchronous"], findings["integrity"]) == ("wal", "2", "ok")


class StaysInDeleteMode(sqlite3.Connection):
    """Ignores the switch to WAL, as SQLite itself does when an error is swallowed on the way."""

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        return super().execute(sql.replace("journal_mode = WAL", "journal_mode = DELETE"), *values)


def test_a_journal_mode_that_silently_stays_is_refused_by_name(tmp_path: Path) -> None:
    def connect(path: str) -> sqlite3.Connection:
        return sqlite3.connect(path, isolation_level=None, factory=StaysInDeleteMode)

    with pytest.raises(StoreUnavailable, match="journal_mode should be wal, is delete"):
        SqliteStore(tmp_path / "store.sqlite", create=True, connect=connect)
    assert list(tmp_path.iterdir()) == []


OTHER_PROCESS = """
import sys
from pathlib import Path
from milepost.stores.contract import Holder, NewRun
from milepost.stores.sqlite.store import SqliteStore
store = SqliteStore(Path(sys.argv[1]), create=False)
for run_id in sys.argv[2:]:
    holder = Holder("here", "boot-1", 100, "2026-11-01T08:00:00Z")
    store.create_run(NewRun(run_id, "task", run_id, None, "2026-11-01T11:00:00Z", holder))
print(len(store.runs()), end="")
store.close()
"""


def runs_seen_elsewhere(path: Path, *begun: str) -> str:
    """Let another process open the store, begin runs, say how many there are, and close it."""
    command = [sys.executable, "-c", OTHER_PROCESS, path, *begun]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("look", ["open it again", "ask whether it is a store"])
def test_an_open_store_keeps_its_locks(tmp_path: Path, look: str) -> None:
    """Closing any descriptor of the file drops them, and the next process that leaves takes the WAL with it."""
    path = tmp_path / "store.sqlite"
    with closing(SqliteStore(path, create=True)) as store:
        begin(store, "before")
        if look == "open it again":
            SqliteStore(path, create=False).close()
        assert belongs_to_store(path, None)
        assert runs_seen_elsewhere(path) == "1"
        begin(store, "after")
        assert runs_seen_elsewhere(path) == "2"


def test_a_wal_that_was_deleted_under_us_is_not_written_in_silence(tmp_path: Path) -> None:
    """A step that copies its folder closes a descriptor of the file, and with it go the locks."""
    path = tmp_path / "store.sqlite"
    store = SqliteStore(path, create=True)
    lease = begin(store, "before")
    path.read_bytes()
    assert runs_seen_elsewhere(path) == "1"
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="-wal was deleted"):
            store.append(batch(lease, 1)).wait()
    with pytest.raises(StoreUnavailable, match="-wal was deleted"):
        begin(store, "after")
    assert runs_seen_elsewhere(path, "between") == "2"
    store.close()
    with pytest.raises(StoreUnavailable, match="-wal was deleted"):
        SqliteStore(path, create=False)
    assert runs_seen_elsewhere(path) == "2"


def foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE orders (id)")
        connection.commit()


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (foreign, "application_id is 0x0"),
        (lambda path: path.write_text("month;total\n"), "not an SQLite database"),
        (Path.touch, "it is empty"),
        (Path.mkdir, "not a file"),
    ],
)
def test_what_is_not_a_store_is_refused_and_left_alone(tmp_path: Path, make: Any, reason: str) -> None:
    path = tmp_path / "thing"
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    for create in (True, False):
        with pytest.raises(ForeignDatabase, match=reason):
            SqliteStore(path, create=create)
    assert (path.read_bytes() if path.is_file() else b"") == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["thing"]


def test_a_damaged_store_is_refused_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    SqliteStore(path, create=True).close()
    damaged = bytearray(path.read_bytes())
    damaged[100:4096] = b"\xff" * 3996
    path.write_bytes(damaged)
    with pytest.raises(MilepostError) as caught:
        SqliteStore(path, create=False)
    assert isinstance(caught.value, StoreUnavailable)
    assert "malformed" in str(caught.value)
    assert path.read_bytes() == bytes(damaged)


def test_resume_never_creates_a_store(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing):
        open_store(create=False, start=tmp_path, environ={})
    with pytest.raises(StoreMissing):
        open_store(create=False, start=tmp_path, environ={"MILEPOST_STORE": "mine.sqlite"})
    assert list(tmp_path.iterdir()) == []


def test_a_store_is_found_upwards_unless_it_is_named(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert locate(inner, {}) is None
    open_store(create=True, start=tmp_path, environ={}).close()
    assert locate(inner, {}) == tmp_path / ".milepost" / "store.sqlite"
    assert locate(inner, {"MILEPOST_STORE": ""}) == tmp_path / ".milepost" / "store.sqlite"
    assert locate(inner, {"MILEPOST_STORE": "x.sqlite"}) == inner / "x.sqlite"
    assert locate(inner, {"MILEPOST_STORE": "/else/x.sqlite"}) == Path("/else/x.sqlite")


def test_an_open_that_fails_leaves_no_connection(tmp_path: Path) -> None:
    """A ResourceWarning from a connection nobody closed would be an error here."""
    opened: list[sqlite3.Connection] = []
    path = tmp_path / "store.sqlite"
    SqliteStore(path, create=True).close()

    def connect(name: str) -> sqlite3.Connection:
        if opened:
            raise sqlite3.OperationalError("unable to open database file")
        opened.append(connect_sqlite(name))
        return opened[0]

    with pytest.raises(StoreUnavailable, match="open failed"):
        SqliteStore(path, create=False, connect=connect)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].execute("SELECT 1")


def test_a_store_without_its_name_is_refused(tmp_path: Path) -> None:
    """Its witnesses cannot be found: it is not the store that was written."""
    path = tmp_path / "store.sqlite"
    SqliteStore(path, create=True).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM meta")
    with pytest.raises(ForeignDatabase, match="the store's own name"):
        SqliteStore(path, create=False)
