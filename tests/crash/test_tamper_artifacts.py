"""Outputs are changed, swapped, taken away: a resume refuses what it would read, `verify` the rest."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
import tampering
from tampering import OTHER, REPORT, RUN, Scene, flipped, ledger, refused

from milepost import step, task
from milepost.artifacts.files import ArtifactFiles
from milepost.errors import CorruptRecord, StoreUnavailable
from milepost.records.canonical import digest
from milepost.runtime.active import RunOptions
from milepost.runtime.check import check_run
from milepost.runtime.verify import verify_run
from milepost.stores.sqlite.store import SqliteStore


def file_of(scene: Scene) -> Path:
    (path,) = (p for d, data in scene.artifacts() if data is None for p in scene.folder.glob(f"*.artifacts/??/{d}"))
    return path


def assert_not_believed(scene: Scene, name: str) -> bool:
    """`verify` names it; a resume refuses, or comes to the same end without having read it. True: refused."""
    assert any("artifact" in said for said in scene.complaints())
    with suppress(CorruptRecord):
        assert scene.resume() == REPORT
        assert ledger.sends == []
        return False
    assert name in str(refused(scene))
    assert ledger.events() == [], "nothing runs"
    return True


@pytest.mark.parametrize("how", ["changed", "cut", "grown", "emptied", "deleted", "taken for a file"])
def test_a_row_of_bytes_that_are_not_the_recorded_ones_is_not_believed(scenes: Callable[[], Scene], how: str) -> None:
    refusals = 0
    for name, data in dict(scenes().artifacts()).items():
        if data is None:
            continue
        scene = scenes()
        new = {"changed": flipped(data), "cut": data[:-1], "grown": data + b" ", "emptied": b""}.get(how)
        if how == "deleted":
            scene.forget_artifact(name)
        else:
            scene.put_artifact(name, new)
        refusals += assert_not_believed(scene, name)
        shutil.rmtree(scene.folder)
    assert refusals == 6, "the run's inputs, three outputs, and the request and result of the line that counts"


def test_two_artifacts_swapped_are_refused(scene: Scene) -> None:
    """Both are genuine, each in the other's place."""
    rows = [(name, data) for name, data in dict(scene.artifacts()).items() if data is not None]
    (first, one), (second, two) = rows[0], rows[1]
    scene.put_artifact(first, two)
    scene.put_artifact(second, one)
    assert isinstance(refused(scene), CorruptRecord)


def test_the_artifact_of_another_run_under_our_digest_is_refused(scene: Scene) -> None:
    ours, _ = scene.artifacts()[0]
    _, theirs = scene.artifacts(OTHER)[0]
    scene.put_artifact(ours, theirs)
    assert isinstance(refused(scene), CorruptRecord)


def test_a_pointer_into_another_place_finds_nothing(scene: Scene) -> None:
    """SEC-4: a digest is a digest; `../` and its kin never reach the file system."""
    for name in ("../../../../etc/passwd", "/etc/passwd", "file:///etc/passwd", "%2e%2e%2f", "..\\x", "a" * 63, ""):
        with scene.store() as store:
            assert store.artifacts(RUN, [name]) == {}
        with pytest.raises(Exception, match="not a SHA-256 digest"):
            ArtifactFiles(scene.folder).read(name)


# ── files ──


def flip(path: Path) -> None:
    path.write_bytes(flipped(path.read_bytes()))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def empty(path: Path) -> None:
    """As a file renamed into place without fsync comes back after a power cut."""
    path.write_bytes(b"")


def link_to_secret(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


def link_to_nothing(path: Path) -> None:
    path.unlink()
    path.symlink_to("/nonexistent/file")


def link_to_itself(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


def fifo(path: Path) -> None:
    """Opening one would wait for a writer for ever."""
    path.unlink()
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


FILE_DAMAGE: list[Callable[[Path], None]] = [
    flip, cut, empty, Path.unlink, link_to_secret, link_to_nothing, link_to_itself, fifo, folder, device,
]  # fmt: skip


@pytest.mark.parametrize("damage", FILE_DAMAGE, ids=lambda damage: damage.__name__)
def test_a_damaged_artifact_file_is_refused_before_anything_runs(scene: Scene, damage: Callable[[Path], None]) -> None:
    path = file_of(scene)
    damage(path)
    error = refused(scene)
    assert isinstance(error, CorruptRecord), error
    assert "output of scan" in str(error)
    assert path.name in str(error)
    assert any("output of scan" in said for said in scene.complaints())


def test_a_file_that_cannot_be_read_now_is_neither_corrupt_nor_absent(scene: Scene) -> None:
    """The third answer: nobody can tell, so nothing is said about it and it is tried again."""
    path = file_of(scene)
    os.chmod(path, 0)
    if os.access(path, os.R_OK):
        path.unlink()
        path.symlink_to("/proc/self/fd/1000000")  # this user reads everything; a path through a closed descriptor
        assert isinstance(refused(scene), CorruptRecord)
        return
    assert isinstance(refused(scene), StoreUnavailable)
    os.chmod(path, 0o600)
    assert scene.resume() == REPORT


def test_check_says_the_same_and_changes_nothing(scene: Scene) -> None:
    flip(file_of(scene))
    before = scene.dump()
    with scene.store() as store:
        options = RunOptions(store=store, seal_key=scene.seal_key, environ=scene.environ)
        findings = check_run(tampering.tampered_month.spec, RUN, store, options)
    assert (findings[0].rule, findings[0].state) == ("Trust", "refuse")
    assert "output of scan" in findings[0].found
    assert scene.dump() == before


# ── a plan that catches everything ──


@step
def slow(month: str) -> str:
    return month


@task
def careless(month: str) -> str:
    """What agents' code looks like: whatever a step raises is caught, and the plan goes on."""
    try:
        found: Any = slow(month)
    except Exception:
        found = "made up"
    if not ledger.mended:
        raise RuntimeError("the power went")
    ledger.bodies.append("went on")
    return str(found)


def test_a_plan_that_catches_everything_cannot_go_on_from_a_damaged_output(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should damage show only while the plan runs, it still ends the journey and not only the step."""
    monkeypatch.setattr("milepost.runtime.trust.check_artifacts", lambda store, opened: None)
    ledger.mended = False
    tampering.start(scene, "careless", "2026-10", plan=careless)
    ledger.mended = True
    scene.put_artifact(digest(b"2026-10"), b"2026-11", "careless")
    with pytest.raises(CorruptRecord, match="output of slow"):
        scene.resume("careless", careless)
    assert ledger.events() == []


def test_a_changed_copy_is_named_although_another_record_holds_the_same_bytes(tmp_path: Path) -> None:
    """The good copy was used, and `verify` said that every artifact was as recorded."""

    @step
    def same(n: int) -> int:
        return 7

    @task
    def twins() -> int:
        return same(1) + same(2)

    path = tmp_path / "store.sqlite"
    with closing(SqliteStore(path, create=True)) as store:
        assert twins.options(store=store).run("r") == 14
    with closing(sqlite3.connect(path)) as connection, connection:
        seqs = [
            row[0] for row in connection.execute("SELECT seq FROM journal WHERE kind = 'step_verified' ORDER BY seq")
        ]
        connection.execute("UPDATE journal SET data = ? WHERE seq = ?", (b"9", seqs[0]))
    with closing(SqliteStore(path, create=False)) as store:
        bad = [verdict for verdict in verify_run(store, "r", None, {}) if not verdict.ok]
        assert [verdict.what for verdict in bad] == ["artifacts"]
        assert f"record {seqs[0]} of run r carries" in bad[0].found
        assert [found.run_id for found in store.check() if not found.ok and found.check == "stored copies"] == ["r"]
        assert twins.options(store=store).resume("r") == 14
