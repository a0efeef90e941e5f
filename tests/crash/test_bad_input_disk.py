"""A disk that is full, read-only, without descriptors, or that holds something else: no send without an intent."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from milepost import Applied, Found, Key, NotFound, effect, step, task
from milepost.errors import ForeignDatabase, MilepostError, StoreMissing, StoreTooNew, StoreUnavailable
from milepost.runtime.verify import verify_run
from milepost.stores.sqlite.store import SqliteStore

Hook = Callable[[], None]
before_body: list[Hook] = []
in_body: list[Hook] = []
in_send: list[Hook] = []
accepted: dict[str, str] = {}
sends: list[str] = []
ran: list[str] = []


def at(hooks: list[Hook]) -> None:
    if hooks:
        hooks.pop()()


def find(key: Key, line: str) -> Found[str] | NotFound:
    return Found(accepted[str(key)]) if str(key) in accepted else NotFound()


@step
def prepare(size: int) -> str:
    ran.append("prepare")
    at(in_body)
    return "x" * size


@effect(key=lambda line: line, lookup=find, settle=timedelta(0), provider="queue")
def post(key: Key, line: str) -> Applied[str]:
    sends.append(line)
    ref = accepted.setdefault(str(key), f"receipt-{len(accepted)}")
    at(in_send)
    return Applied(ref, ref=ref)


@task
def posting(size: int) -> list[str]:
    at(before_body)
    text = prepare(size)
    return [post("a"), post("b"), str(len(text))]


@pytest.fixture(autouse=True)
def _clean() -> None:
    for each in (before_body, in_body, in_send, sends, ran, accepted):
        each.clear()


def fill(folder: Path) -> None:
    """Leave not a byte."""
    with (folder / "ballast").open("ab", buffering=0) as file:
        for size in (65536, 4096, 512, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue


def free(folder: Path) -> None:
    (folder / "ballast").unlink()


@contextmanager
def opened(path: Path, *, create: bool = False) -> Iterator[Any]:
    with closing(SqliteStore(path, create=create)) as store:
        yield posting.options(store=store)


def assert_finishes(path: Path, size: int, *, preparations: int) -> None:
    with opened(path) as plan:
        assert plan.run("r", size) == ["receipt-0", "receipt-1", str(size)]
        assert all(verdict.ok for verdict in verify_run(plan._options.store, "r", None, {}))
    assert sorted(accepted.values()) == ["receipt-0", "receipt-1"], "each was applied once"
    assert ran.count("prepare") == preparations
    assert not list(path.parent.rglob("*unfinished*"))


def assert_unavailable(error: MilepostError, folder: Path) -> None:
    assert isinstance(error, StoreUnavailable), error
    assert error.exit_status == 6
    assert str(folder) in str(error)


# ── a full disk ──


def test_a_disk_that_is_full_at_the_start(small_disk: Path) -> None:
    path = small_disk / "store.sqlite"
    with opened(path, create=True) as plan:
        fill(small_disk)
        with pytest.raises(StoreUnavailable) as failed:
            plan.run("r", 10)
        assert_unavailable(failed.value, small_disk)
    assert (ran, sends) == ([], [])
    free(small_disk)
    with opened(path) as plan:
        assert plan.run("r", 10) == ["receipt-0", "receipt-1", "10"]
    assert sends == ["a", "b"]


def test_no_store_is_made_on_a_full_disk(small_disk: Path) -> None:
    fill(small_disk)
    with pytest.raises(StoreUnavailable) as failed:
        SqliteStore(small_disk / "store.sqlite", create=True)
    assert_unavailable(failed.value, small_disk)
    assert [entry.name for entry in small_disk.iterdir()] == ["ballast"]


FULL_AT: dict[str, tuple[list[Hook], int, int, list[str]]] = {
    "start": (before_body, 10, 1, []),
    "checkpoint and intent": (in_body, 10, 2, []),
    "artifact row": (in_body, 60_000, 2, []),
    "artifact file": (in_body, 200_000, 2, []),
    "outcome": (in_send, 10, 1, ["a"]),
}


@pytest.mark.parametrize("place", FULL_AT)
def test_a_disk_that_is_full_in_the_middle(small_disk: Path, place: str) -> None:
    """Whatever could not be written did not happen for the record; what was sent has its intent."""
    hooks, size, preparations, sent = FULL_AT[place]
    path = small_disk / "store.sqlite"
    hooks.append(lambda: fill(small_disk))
    with opened(path, create=True) as plan:
        with pytest.raises(StoreUnavailable) as failed:
            plan.run("r", size)
        assert_unavailable(failed.value, small_disk)
    assert sends == sent
    with opened(path) as plan:
        fill(small_disk)  # closing gave the space of the WAL back
        with pytest.raises(StoreUnavailable):
            plan.run("r", size)
    assert sends == sent, "still full, still nothing sent"
    free(small_disk)
    assert_finishes(path, size, preparations=preparations)
    assert sends == ["a", "b"], "an open intent was found, not sent again"


def test_a_full_disk_cannot_be_caught_by_the_plan(small_disk: Path) -> None:
    """Agents catch everything; a run that can no longer record must not go on sending."""

    @task
    def careless() -> list[str]:
        done = []
        for line in ("a", "b", "c"):
            try:
                done.append(post(line))
            except Exception:
                done.append("caught")
        return done

    in_send.append(lambda: fill(small_disk))
    with closing(SqliteStore(small_disk / "store.sqlite", create=True)) as store, pytest.raises(StoreUnavailable):
        careless.options(store=store).run("r")
    assert sends == ["a"]


# ── no descriptors ──


@contextmanager
def no_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def take_descriptors() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, most))


@pytest.fixture
def descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_no_descriptor_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    SqliteStore(path, create=True).close()
    with no_descriptors(), pytest.raises(StoreUnavailable):
        SqliteStore(path, create=False)
    with opened(path) as plan:
        with no_descriptors(), pytest.raises(StoreUnavailable) as failed:
            plan.run("r", 10)
        assert_unavailable(failed.value, tmp_path)
        assert (ran, sends) == ([], [])
        assert plan.run("r", 10) == ["receipt-0", "receipt-1", "10"]


@pytest.mark.parametrize(("size", "preparations"), [(10, 1), (200_000, 2)], ids=["rows", "file"])
def test_no_descriptor_in_the_middle(tmp_path: Path, descriptors: None, size: int, preparations: int) -> None:
    """A commit needs none, so a run of small outputs goes on; a large one cannot be kept and stops it."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    in_body.append(take_descriptors)
    path = tmp_path / "store.sqlite"
    with opened(path, create=True) as plan:
        if size == 10:
            assert plan.run("r", size) == ["receipt-0", "receipt-1", "10"]
        else:
            with pytest.raises(StoreUnavailable, match="Too many open files"):
                plan.run("r", size)
            assert sends == []
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert_finishes(path, size, preparations=preparations)


# ── read-only, foreign, too new, gone ──


def test_a_read_only_folder_is_refused_before_anything_runs(small_disk: Path) -> None:
    path = small_disk / "store.sqlite"
    SqliteStore(path, create=True).close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(StoreUnavailable, match="not writable"):
        SqliteStore(path, create=True)
    with opened(path) as plan, pytest.raises(StoreUnavailable, match="not writable"):
        plan.run("r", 10)
    with pytest.raises(StoreUnavailable, match="Read-only"):
        SqliteStore(small_disk / "sub" / "new.sqlite", create=True)
    assert ran == []


def test_a_folder_that_becomes_read_only_while_a_run_works(small_disk: Path) -> None:
    """As a disk does that found an error. SQLite's open files go on or fail; what is sent has its intent."""
    path = small_disk / "store.sqlite"
    with opened(path, create=True) as plan:
        in_body.append(lambda: path.with_name(f"{path.name}.artifacts").mkdir(exist_ok=True))
        in_body.append(lambda: os.chmod(small_disk, 0o500))
        assert plan.run("r", 10) == ["receipt-0", "receipt-1", "10"]


FOREIGN: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("a shopping list\n" * 100, encoding="utf-8"),
    "pickle": lambda path: path.write_bytes(b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x04true\x85R."),
    "folder": lambda path: path.mkdir(),
    "fifo": lambda path: os.mkfifo(path),
    "header only": lambda path: path.write_bytes(b"SQLite format 3\x00"),
    "other program's": lambda path: _database(path, "CREATE TABLE bookmarks (url TEXT)"),
    "other program's runs": lambda path: _database(path, "CREATE TABLE runs (run_id TEXT)"),
    "our number, not ours": lambda path: _database(path, f"PRAGMA application_id = {_our_number()}"),
}


def _database(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.execute("CREATE TABLE IF NOT EXISTS theirs (x)")
        connection.commit()


def _our_number() -> int:
    from milepost.stores.sqlite.opening import APPLICATION_ID

    return APPLICATION_ID


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("create", [True, False])
def test_a_file_that_is_not_ours_is_refused_and_left_alone(tmp_path: Path, kind: str, create: bool) -> None:
    path = tmp_path / "store.sqlite"
    FOREIGN[kind](path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises((ForeignDatabase, StoreUnavailable)) as refused:
        SqliteStore(path, create=create)
    assert str(path) in str(refused.value)
    assert (path.read_bytes() if path.is_file() else b"") == before
    assert {entry.name for entry in tmp_path.iterdir()} == {"store.sqlite"}


def test_a_store_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with opened(path, create=True) as plan:
        assert plan.run("r", 10) == ["receipt-0", "receipt-1", "10"]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO migrations VALUES (9999, 'from the future')")
        connection.commit()
    shutil.copy(path, tmp_path / "copy")
    with pytest.raises(StoreTooNew, match="9999"):
        SqliteStore(path, create=False)
    assert path.read_bytes() == (tmp_path / "copy").read_bytes()


def test_resuming_never_creates_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreMissing):
        posting.resume("r")
    monkeypatch.setenv("MILEPOST_STORE", str(tmp_path / "no" / "such" / "store.sqlite"))
    with pytest.raises(StoreMissing):
        posting.resume("r")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["header", "middle", "cut", "zeros"])
def test_a_damaged_database_file_is_named_and_nothing_runs(tmp_path: Path, damage: str) -> None:
    """Below our seals is SQLite's own format: its error is translated, not shown as a traceback."""
    path = tmp_path / "store.sqlite"
    with opened(path, create=True) as plan:
        plan.run("r", 10)
    ran.clear()
    data = bytearray(path.read_bytes())
    if damage == "header":
        data[40:60] = b"\xff" * 20
    elif damage == "middle":
        data[4096:] = b"\xff" * (len(data) - 4096)
    elif damage == "cut":
        del data[5000:]
    else:
        data[4096:] = bytes(len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(MilepostError) as failed, opened(path) as plan:
        plan.resume("r")
    assert failed.value.exit_status in (3, 6)
    assert (ran, sends) == ([], ["a", "b"])
