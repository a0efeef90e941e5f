"""An interrupt (Ctrl-C, a signal handler that raises) while a transaction begins: none is left open."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from store_rows import AT, batch, begin

from milepost.records.rows import CancelRow
from milepost.stores.contract import Lease
from milepost.stores.sqlite.store import SqliteStore


class Interrupted(sqlite3.Connection):
    """Is interrupted once as a signal does it: when a statement is over."""

    after: str | None = None

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        found = super().execute(sql, *values)
        if sql == self.after:
            self.after = None
            raise KeyboardInterrupt
        return found


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[tuple[SqliteStore, Interrupted]]:
    made: list[Interrupted] = []

    def connect(path: str) -> Interrupted:
        made.append(sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=Interrupted))
        return made[-1]

    SqliteStore(tmp_path / "store.sqlite", create=True).close()
    with closing(SqliteStore(tmp_path / "store.sqlite", create=False, connect=connect)) as store:
        yield store, made[0]


DOORS: dict[str, Callable[[SqliteStore, Lease], object]] = {
    "create": lambda store, lease: begin(store, "another"),
    "renew": lambda store, lease: store.renew(lease, AT),
    "cancel": lambda store, lease: store.cancel(CancelRow("r", "ana", AT, None, "seal")),
    "append": lambda store, lease: store.append(batch(lease, 1)).wait(),
}


@pytest.mark.parametrize("door", DOORS)
def test_an_interrupt_while_a_transaction_begins_is_raised_and_leaves_none_open(
    opened: tuple[SqliteStore, Interrupted], door: str
) -> None:
    """Else no process could write to the store while this one lives."""
    store, writing = opened
    lease = begin(store)
    writing.after = "BEGIN IMMEDIATE"
    with pytest.raises(KeyboardInterrupt):
        DOORS[door](store, lease)
    assert not writing.in_transaction
    begin(store, "the next")
