"""The stores the conformance suite runs against: add one here and every promise is checked on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from milepost.stores.contract import Store
from milepost.stores.memory import MemoryStore
from milepost.stores.sqlite.store import SqliteStore


@pytest.fixture(params=["sqlite", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: Store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "store.sqlite", create=True)
    yield made
    made.close()


@pytest.fixture
def reopened(store: Store) -> Iterator[Callable[[], Store]]:
    """Close the store and give what the next process finds."""
    opened: list[Store] = []

    def reopen() -> Store:
        store.close()
        again = store.crash() if isinstance(store, MemoryStore) else SqliteStore(Path(store.location), create=False)
        opened.append(again)
        return again

    yield reopen
    for again in opened:
        again.close()
