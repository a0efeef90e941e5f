"""A store that another connection keeps locked in the midst of a commit: who is told what, and what still works."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from milepost.drill.standing import is_writable
from milepost.errors import StoreUnavailable
from milepost.stores.contract import Holder, NewRun
from milepost.stores.sqlite.store import SqliteStore

AT = "2026-11-01T10:00:00Z"
RUN = NewRun("r", "task", "r", None, AT, Holder("here", "boot", 1, AT))


def connect_impatiently(path: str) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0.01)


def test_a_locked_store_says_who_may_hold_it_and_is_read_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The space and the permissions that other failures hint at are not what to look for."""
    monkeypatch.setattr("milepost.stores.sqlite.connection.BUSY_S", 0.01)
    path = tmp_path / "store.sqlite"
    with closing(SqliteStore(path, create=True, connect=connect_impatiently)) as store:
        assert is_writable(path)
        with closing(connect_impatiently(str(path))) as other:
            other.execute("BEGIN IMMEDIATE")
            assert not is_writable(path)
            with pytest.raises(StoreUnavailable, match="SQLITE_BUSY") as caught:
                store.create_run(RUN)
            assert "stopped in the midst of a commit" in caught.value.hint
            assert store.run("r") is None
            other.execute("ROLLBACK")
        assert store.create_run(RUN) is not None
