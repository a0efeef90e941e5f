"""What a watch sees of runs that are not there any more, or not to be trusted: nothing that ends the watch."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import milepost
from milepost import task
from milepost.errors import RunWaiting
from milepost.stores.sqlite.store import SqliteStore
from milepost.watch.look import Looker


@task
def sleeps() -> str:
    milepost.sleep(timedelta(hours=1))
    return "woke"


def test_a_run_that_goes_between_two_looks_ends_no_watch(tmp_path: Path) -> None:
    """Somebody finished and pruned it in another process after it was listed."""
    path = tmp_path / "store.sqlite"
    store = SqliteStore(path, create=True)
    with pytest.raises(RunWaiting):
        sleeps.options(store=store, wait=False).run("r")
    looker = Looker(store, None, lambda: datetime.now(UTC))
    (row,) = looker._rows()
    with closing(sqlite3.connect(path, isolation_level=None)) as elsewhere:
        elsewhere.execute("DELETE FROM runs")
    assert looker._seen(row).word == "waiting"
    store.close()
