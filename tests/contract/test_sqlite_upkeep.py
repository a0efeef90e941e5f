"""Pruning with artifact files, and what `doctor` is told."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from store_rows import AT, HERE, batch, begin, progress, record

from milepost.artifacts.files import ArtifactFiles
from milepost.errors import StoreUnavailable
from milepost.records.model import RunStatus
from milepost.stores.contract import StoredArtifact
from milepost.stores.sqlite.store import SqliteStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "store.sqlite", create=True)) as made:
        yield made


@pytest.fixture
def files(store: SqliteStore) -> ArtifactFiles:
    assert store.folder is not None
    return ArtifactFiles(store.folder)


def filed(files: ArtifactFiles, data: bytes) -> StoredArtifact:
    return StoredArtifact(*files.write(data), "text/plain", None)


def finish(store: SqliteStore, run_id: str, *artifacts: StoredArtifact, outcome: bytes = b"{}") -> None:
    """Leave a run that is done."""
    lease = begin(store, run_id)
    records = [record(1, kind="outcome_recorded", body=outcome)]
    store.append(batch(lease, 1, records=records, artifacts=artifacts, progress=progress(RunStatus.DONE))).wait()
    store.release(lease)


def complaints(store: SqliteStore) -> dict[str, str]:
    return {finding.check: finding.found for finding in store.check() if not finding.ok}


def test_pruning_removes_files_no_other_run_points_at(store: SqliteStore, files: ArtifactFiles) -> None:
    shared, own = filed(files, b"shared"), filed(files, b"own")
    finish(store, "old", shared, own)
    finish(store, "kept", shared)
    assert store.prune(["old"], AT) == 1
    assert set(files.sizes()) == {shared.digest}
    assert complaints(store) == {}


def test_a_file_pruned_before_its_row_was_written_stops_only_that_run(store: SqliteStore, files: ArtifactFiles) -> None:
    """Written, not yet recorded, removed by a prune of the only run that pointed at it: no row without its bytes."""
    artifact = filed(files, b"twice")
    finish(store, "old", artifact)
    lease, other = begin(store, "new"), begin(store, "other")
    assert filed(files, b"twice") == artifact
    store.prune(["old"], AT)
    late, fine = store.append(batch(lease, 1, artifacts=[artifact])), store.append(batch(other, 1))
    with pytest.raises(StoreUnavailable, match="is gone"):
        late.wait()
    fine.wait()
    assert store.records("new") == []


def test_a_value_that_sqlite_refuses_stops_only_its_run(store: SqliteStore) -> None:
    lease, other = begin(store, "bad"), begin(store, "other")
    bad = store.append(batch(lease, 1, records=[record(1, kind="\ud800")]))
    store.append(batch(other, 1)).wait()
    with pytest.raises(StoreUnavailable, match="surrogates"):
        bad.wait()
    assert store.records("bad") == []


def test_the_audit_of_a_pruned_run_names_its_applied_effects(store: SqliteStore) -> None:
    applied = {"path": "post", "key": "mp1-a", "ref": "A-7", "outcome": "applied"}
    finish(store, "applied", outcome=json.dumps(applied).encode())
    finish(store, "rejected", outcome=b'{"outcome":"rejected","key":"mp1-b"}')
    finish(store, "damaged", outcome=b"\xff{")
    assert store.prune(["applied", "rejected", "damaged"], AT) == 3
    with closing(sqlite3.connect(store.path)) as connection:
        kept = dict(connection.execute("SELECT run_id, applied FROM audit").fetchall())
    assert json.loads(kept["applied"]) == [{"path": "post", "key": "mp1-a", "ref": "A-7"}]
    assert (kept["rejected"], kept["damaged"]) == ("[]", "[]")


def test_doctor_names_files_that_are_missing_orphaned_or_unfinished(store: SqliteStore, files: ArtifactFiles) -> None:
    gone, short = filed(files, b"gone"), filed(files, b"short")
    finish(store, "r", gone, short)
    files.remove(gone.digest)
    files.path(short.digest).write_bytes(b"sho")
    orphan = filed(files, b"orphan")
    (files.folder / ".unfinished-0").touch()
    found = complaints(store)
    assert set(found) == {"artifact files", "orphan files", "unfinished files"}
    assert gone.digest in found["artifact files"]
    assert short.digest in found["artifact files"]
    assert orphan.digest in found["orphan files"]


def test_doctor_names_open_permissions_and_leases_of_the_dead(store: SqliteStore) -> None:
    begin(store, "r", holder=HERE)
    store.close()
    store.path.chmod(0o644)
    with closing(SqliteStore(store.path, create=False)) as again:
        found = complaints(again)
    assert set(found) == {"permissions", "leases"}
    assert "0644" in found["permissions"]
    assert "r" in found["leases"]


def test_doctor_names_rows_that_point_nowhere(store: SqliteStore) -> None:
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("INSERT INTO answers VALUES (1, 'q', 'c', 'b', 'a', '', NULL, NULL, 1, NULL, NULL, '', '')")
        connection.commit()
    assert complaints(store) == {"references": "1 dangling rows"}


def test_doctor_names_what_somebody_else_made_in_the_store(store: SqliteStore) -> None:
    """A trigger changes what is written; until a run ends in a refusal nothing said that it is there."""
    assert complaints(store) == {}
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("CREATE TABLE notes (text)")
        connection.execute("CREATE TRIGGER undo AFTER INSERT ON journal BEGIN DELETE FROM journal; END")
        connection.commit()
    found = complaints(store)["foreign objects"]
    assert "table notes" in found
    assert "trigger undo" in found
