"""A signal handler that raises (Ctrl-C, a time limit) wherever in the store: nobody else waits for ever after it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from interrupts import Interrupts, in_a_thread
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


def whole(store: SqliteStore, run_id: str) -> str:
    """Take a run, append to it and give it back."""
    lease = begin(store, run_id)
    store.append(batch(lease, 1)).wait()
    store.append(batch(lease, 2))
    store.release(lease)
    return run_id


def test_an_interrupt_at_any_place_keeps_no_other_thread_from_the_store(
    opened: tuple[SqliteStore, Interrupted],
) -> None:
    store, writing = opened
    whole(store, "the committer's thread runs")
    interrupts = Interrupts()
    while interrupts.once_more(partial(whole, store, f"interrupted {interrupts.count}")):
        assert not writing.in_transaction, interrupts.where
        assert in_a_thread(partial(whole, store, f"another {interrupts.count}")), interrupts.where
    assert interrupts.count > 100


def test_a_run_whose_taking_or_giving_back_was_interrupted_is_free(opened: tuple[SqliteStore, Interrupted]) -> None:
    """Where its row says held, the lock of its holder is free."""
    store, _ = opened
    lease = begin(store)
    store.release(lease)
    interrupts = Interrupts()

    def again() -> bool:
        found = store.acquire("r", lease.holder)
        assert isinstance(found, Lease), interrupts.where
        try:
            store.release(found)
        finally:
            store.release(found)  # as `Taken` does: a call that was interrupted as it began did nothing
        return True

    while interrupts.once_more(again):
        assert in_a_thread(again), interrupts.where
    assert interrupts.count > 50
