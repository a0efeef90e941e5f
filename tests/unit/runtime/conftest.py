"""A desk on each store: what holds for one must hold for the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from desk import Desk

from milepost.stores.contract import Store
from milepost.stores.memory import MemoryStore
from milepost.stores.sqlite.store import SqliteStore


@pytest.fixture(params=["memory", "sqlite"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    path = tmp_path / "first" / "store.sqlite"
    store: Store = MemoryStore() if request.param == "memory" else SqliteStore(path, create=True)
    made = Desk(store, tmp_path)
    yield made
    made.close()
