"""Which commits are flushed to the disk: all of records, questions and claims; none of leases alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from store_rows import AT, HERE, batch, begin, claim

from milepost.records.rows import CancelRow
from milepost.stores.sqlite.connection import connect_sqlite
from milepost.stores.sqlite.store import SqliteStore

FULL = "PRAGMA synchronous = FULL"


class Watched(sqlite3.Connection):
    """Notes for each transaction whether its commit is flushed; can be interrupted once at a statement."""

    commits: list[str]
    interrupt_at: str | None

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if sql == self.interrupt_at:
            self.interrupt_at = None
            raise KeyboardInterrupt
        if sql == "COMMIT":
            self.commits.append(str(super().execute("PRAGMA synchronous").fetchone()[0]))
        return super().execute(sql, *values)


@pytest.fixture
def connections() -> list[Watched]:
    return []


@pytest.fixture
def store(tmp_path: Path, connections: list[Watched]) -> Iterator[SqliteStore]:
    def connect(path: str) -> Watched:
        connect_sqlite(path).close()  # refuses what the real one refuses
        made = sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=Watched)
        made.commits, made.interrupt_at = [], None
        connections.append(made)
        return made

    SqliteStore(tmp_path / "store.sqlite", create=True).close()
    with closing(SqliteStore(tmp_path / "store.sqlite", create=False, connect=connect)) as opened:
        yield opened


def test_records_are_flushed_and_leases_alone_are_not(store: SqliteStore, connections: list[Watched]) -> None:
    """A flush per lease would cost a run as much as two steps; a record's flush takes the lease along."""
    writing = connections[0]
    writing.commits.clear()
    lease = begin(store)
    assert store.renew(lease, AT)
    assert writing.commits == ["1", "1"]
    store.append(batch(lease, 1)).wait()
    store.claim(claim(lease), lease.token)
    store.cancel(CancelRow("r", "ann", AT))
    assert writing.commits == ["1", "1", "2", "2", "2"]
    store.release(lease)
    assert store.acquire("r", HERE) is not None
    assert writing.commits[5:] == ["1", "1"]


def test_a_lease_given_back_with_a_batch_costs_no_commit_and_leaves_no_lock(
    store: SqliteStore, connections: list[Watched]
) -> None:
    """Its own would wait for the commit of another run that is under way: on the loop, in an async program."""
    lease = begin(store)
    connections[0].commits.clear()
    store.append(batch(lease, 1, gives_back=True)).wait()
    assert len(list(store.path.with_name(f"{store.path.name}.locks").iterdir())) == 1
    store.release(lease)
    assert connections[0].commits == ["2"]
    assert list(store.path.with_name(f"{store.path.name}.locks").iterdir()) == []


def test_an_interrupt_never_leaves_records_unflushed(store: SqliteStore, connections: list[Watched]) -> None:
    lease = begin(store)
    connections[0].interrupt_at = FULL
    with pytest.raises(KeyboardInterrupt):
        store.renew(lease, AT)
    connections[0].commits.clear()
    store.append(batch(lease, 1)).wait()
    assert connections[0].commits == ["2"]


def test_release_leaves_nothing_of_its_run_behind(store: SqliteStore) -> None:
    lease = begin(store)
    store.append(batch(lease, 1))
    store.release(lease)
    assert [found.seq for found in store.records("r")] == [1]
