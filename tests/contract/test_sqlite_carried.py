"""Small artifacts lie in the rows of records: found by digest whatever was written meanwhile, and by whom."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from store_rows import artifact, batch, begin, record

from milepost.stores.sqlite import carried
from milepost.stores.sqlite.store import SqliteStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "store.sqlite", create=True)) as made:
        yield made


def test_what_was_written_after_the_first_look_is_found(store: SqliteStore) -> None:
    lease = begin(store)
    found = [artifact(b"%d" % n) for n in range(1, 5)]
    for seq, one in enumerate(found, 1):
        store.append(batch(lease, seq, artifacts=[one])).wait()
        assert store.artifacts("r", [one.digest]) == {one.digest: one}
    assert store.artifacts("r", [one.digest for one in found]) == {one.digest: one for one in found}


def test_another_process_sees_what_is_written_after_its_first_look(store: SqliteStore) -> None:
    lease, one, two = begin(store), artifact(b"1"), artifact(b"2")
    store.append(batch(lease, 1, artifacts=[one])).wait()
    with closing(SqliteStore(store.path, create=False)) as other:
        assert set(other.artifacts("r", [one.digest, two.digest])) == {one.digest}
        store.append(batch(lease, 2, artifacts=[two])).wait()
        assert set(other.artifacts("r", [one.digest, two.digest])) == {one.digest, two.digest}


def test_many_runs_are_looked_at_in_turn(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The maps that are kept are bounded; a run whose map was forgotten is read again."""
    monkeypatch.setattr(carried, "RUNS_MAX", 2)
    for n in range(5):
        store.append(batch(begin(store, f"r{n}"), 1, artifacts=[artifact(b"%d" % n)])).wait()
    for n in (0, 1, 2, 3, 4, 0, 4):
        one = artifact(b"%d" % n)
        assert store.artifacts(f"r{n}", [one.digest]) == {one.digest: one}


def test_an_outline_brings_outputs_and_not_what_steps_were_given(store: SqliteStore) -> None:
    """A resume checks every output, and looks at an input only where the plan gives another: it takes no room."""
    lease, given, output = begin(store), artifact(b"1"), artifact(b"2")
    store.append(batch(lease, 1, artifacts=[given])).wait()
    store.append(batch(lease, 2, records=[record(2, kind="step_verified")], artifacts=[output])).wait()
    assert store.outline("r").small == {output.digest: b"2"}
    assert store.artifacts("r", [given.digest]) == {given.digest: given}
