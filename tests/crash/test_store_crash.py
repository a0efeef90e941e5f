"""Real processes that die: what was acknowledged is there, what is there is a prefix, the next holder goes on."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from milepost.artifacts.files import ArtifactFiles
from milepost.errors import StoreUnavailable
from milepost.stores.contract import Batch, Head, Held, Holder, Lease, NewRun, StoredArtifact, StoredRecord
from milepost.stores.sqlite.store import SqliteStore

CHILD = Path(__file__).with_name("store_child.py")
PATIENCE_S = 60
AT = "2026-11-01T10:00:00Z"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
HERE = Holder("here", BOOT_ID, os.getpid(), AT)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    SqliteStore(tmp_path / "store.sqlite", create=True).close()
    return tmp_path / "store.sqlite"


@pytest.fixture
def start(path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start children on the store; none outlives its test."""
    started: list[subprocess.Popen[str]] = []

    def begin(*words: object) -> subprocess.Popen[str]:
        command = [sys.executable, str(CHILD), str(path), *map(str, words)]
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen(command, text=True, **pipes))
        return started[-1]

    yield begin
    for child in started:
        child.kill()
        with child:
            pass


def lines(child: subprocess.Popen[str]) -> list[str]:
    """Return what it says from here on; `communicate` would pass by what `readline` has taken from the pipe already."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.close()
    out = child.stdout.read()
    child.wait(PATIENCE_S)
    return out.splitlines()


def line(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def tell(child: subprocess.Popen[str]) -> str:
    assert child.stdin is not None
    child.stdin.write("go\n")
    child.stdin.flush()
    return line(child)


def seqs(store: SqliteStore, run_id: str = "r") -> list[int]:
    return [record.seq for record in store.records(run_id)]


def batch(lease: Lease, seq: int, *artifacts: StoredArtifact, body: bytes = b"{}") -> Batch:
    records = [StoredRecord(seq, "", "note", body, b"s" * 32)]
    return Batch(lease.run_id, lease.token, records, Head(seq, b"h" * 32), artifacts=artifacts)


def new_run(store: SqliteStore, run_id: str) -> Lease:
    lease = store.create_run(NewRun(run_id, "task", run_id, None, AT, HERE))
    assert lease is not None
    return lease


@pytest.mark.parametrize("kill_at", [1, 2, 3, 7])
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_around_a_commit_what_was_acknowledged_is_there(
    path: Path, start: Callable[..., subprocess.Popen[str]], kill_at: int, when: str
) -> None:
    """Commit 1 creates the run, each later one holds a batch of two records."""
    child = start("r", "append", 9, kill_at, when)
    acked = [int(text.split()[1]) for text in lines(child)]
    assert child.returncode == -signal.SIGKILL
    written = kill_at - (when == "before")
    with closing(SqliteStore(path, create=False)) as store:
        assert seqs(store) == list(range(1, 2 * (written - 1) + 1))
        assert acked == list(range(2, 2 * (kill_at - 1), 2))
        lease = store.acquire("r", HERE)
        assert lease == (Lease("r", 2, HERE) if written else None)
        assert {finding.check for finding in store.check() if not finding.ok} <= {"lock files"}


def test_killed_at_any_moment_what_was_acknowledged_is_there(
    path: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    for round_number, acks in enumerate((1, 5, 23)):
        child = start(f"r{round_number}", "append", 100_000)
        acked = 0
        for _ in range(acks):
            acked = int(line(child).split()[1])
        child.kill()
        acked = max([acked, *(int(text.split()[1]) for text in lines(child) if len(text.split()) == 2)])
        with closing(SqliteStore(path, create=False)) as store:
            found = seqs(store, f"r{round_number}")
            assert found == list(range(1, len(found) + 1))
            assert len(found) in (acked, acked + 2)


def test_two_processes_share_one_file_while_a_third_reads(
    path: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    children = [start(f"r{n}", "append", 60) for n in range(2)]
    with closing(SqliteStore(path, create=False)) as store:
        while any(child.poll() is None for child in children):
            for row in store.runs():
                found = seqs(store, row.run_id)
                assert found == list(range(1, len(found) + 1))
        assert [child.returncode for child in children] == [0, 0]
        assert [seqs(store, f"r{n}") for n in range(2)] == [list(range(1, 121))] * 2


def test_an_exit_commits_what_nobody_waited_for(path: Path, start: Callable[..., subprocess.Popen[str]]) -> None:
    child = start("r", "leave")
    lines(child)
    assert child.returncode == 0
    with closing(SqliteStore(path, create=False)) as store:
        assert seqs(store) == [1, 2]


def test_a_living_holder_is_named_and_a_dead_one_succeeded_at_once(
    path: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    child = start("r", "hold")
    assert line(child) == "holding"
    with closing(SqliteStore(path, create=False)) as store:
        held = store.acquire("r", HERE)
        assert isinstance(held, Held)
        assert held.holder.pid == child.pid
        child.kill()
        child.wait(PATIENCE_S)
        assert store.acquire("r", HERE) == Lease("r", 2, HERE)


def test_a_frozen_holder_that_wakes_writes_nothing(path: Path, start: Callable[..., subprocess.Popen[str]]) -> None:
    child = start("r", "hold")
    assert (line(child), tell(child)) == ("holding", "acked 2")
    with closing(SqliteStore(path, create=False)) as store:
        child.send_signal(signal.SIGSTOP)
        held = store.acquire("r", HERE)
        assert isinstance(held, Held)
        lease = store.acquire("r", HERE, still=held)
        assert isinstance(lease, Lease)
        assert isinstance(store.acquire("r", HERE), Held)
        child.send_signal(signal.SIGCONT)
        assert tell(child) == "lost"
        store.append(batch(lease, 3)).wait()
        assert seqs(store) == [1, 2, 3]
        lines(child)
        assert isinstance(store.acquire("r", HERE), Held), "the death of the old holder proves nothing about the new"


def test_a_holder_of_another_boot_of_this_host_is_dead(path: Path) -> None:
    with closing(SqliteStore(path, create=False)) as store:
        store.create_run(NewRun("r", "task", "r", None, AT, Holder("here", "an-earlier-boot", 7, AT)))
        assert store.acquire("r", HERE) == Lease("r", 2, HERE)


def test_a_lock_file_that_is_gone_proves_nothing(path: Path, start: Callable[..., subprocess.Popen[str]]) -> None:
    child = start("r", "hold")
    assert line(child) == "holding"
    for lock in path.with_name("store.sqlite.locks").iterdir():
        lock.unlink()
    with closing(SqliteStore(path, create=False)) as store:
        assert isinstance(store.acquire("r", HERE), Held)


def test_a_forked_child_never_speaks_for_the_run_nor_keeps_it_alive(
    path: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    parent = start("r", "fork")
    assert [line(parent) for _ in range(3)] == ["refused True"] * 3
    name, pid = line(parent).split()
    assert name == "child"
    with closing(SqliteStore(path, create=False)) as store:
        assert isinstance(store.acquire("r", HERE), Held)
        parent.kill()
        parent.wait(PATIENCE_S)
        os.kill(int(pid), 0)
        assert store.acquire("r", HERE) == Lease("r", 2, HERE)
        assert seqs(store) == [1, 2]
    os.kill(int(pid), signal.SIGKILL)


def test_a_forked_child_never_opens_what_its_parent_has_open(start: Callable[..., subprocess.Popen[str]]) -> None:
    """It would hold no lock of its own: at the parent's exit the WAL went, and all that the child had committed."""
    assert lines(start("r", "reopen")) == [
        *["refused store.sqlite"] * 3,
        "refused link.sqlite",
        "opened was.sqlite",
        "opened new.sqlite",
        "parent 1",
    ]


# ── a disk that refuses ──


def test_a_file_that_was_deleted_under_us_is_not_written_in_silence(path: Path) -> None:
    """SQLite goes on writing to the deleted file; nobody would ever read it."""
    store = SqliteStore(path, create=False)
    lease = new_run(store, "r")
    path.unlink()
    with pytest.raises(StoreUnavailable, match=r"append failed: No such file"):
        store.append(batch(lease, 1)).wait()
    store.close()


READS_ITS_OWN_FOLDER = """
import subprocess, sys
from pathlib import Path

from milepost import Folder, step, task


@step(sources=[Folder(".")])
def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.txt"))


@step
def kept(found: list[str]) -> Path:
    return Path(".")


@step
def looked_at_from_outside(kept: Path) -> str:
    return subprocess.run([sys.executable, "-m", "milepost", "runs"], check=True, capture_output=True, text=True).stdout


@task
def reads_its_own_folder() -> str:
    return looked_at_from_outside(kept(names(Path("."))))
"""


def test_a_run_that_watches_and_keeps_the_folder_of_its_store_keeps_its_locks(tmp_path: Path) -> None:
    """Another process that looks in and closes would delete the WAL, were the locks gone."""
    (tmp_path / "plan.py").write_text(READS_ITS_OWN_FOLDER)
    (tmp_path / "a.txt").write_text("a")
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "PYTHONPATH": os.pathsep.join(sys.path)}
    environ["PYTHONDONTWRITEBYTECODE"] = "1"
    for _ in range(2):
        command = [sys.executable, "-m", "milepost", "run", "plan.py:reads_its_own_folder", "--run-id", "r", "--plain"]
        run = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr


def test_without_a_free_descriptor_the_run_stops_and_nothing_is_half_done(path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with closing(SqliteStore(path, create=False)) as store:
        lease = new_run(store, "r")
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
        try:
            with pytest.raises(StoreUnavailable, match="create run failed: Too many open files"):
                new_run(store, "other")
            with pytest.raises(StoreUnavailable, match="open failed"):
                SqliteStore(path, create=False)
            store.append(batch(lease, 1)).wait()  # a commit needs no new descriptor
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        assert store.run("other") is None
        assert seqs(store) == [1]


def append_until_it_fails(store: SqliteStore, lease: Lease, seq: int) -> None:
    for number in range(seq, seq + 100):
        store.append(batch(lease, number, body=b"z" * 8000)).wait()


def test_a_full_disk_stops_the_run_and_the_store_goes_on_when_there_is_space(small_disk: Path) -> None:
    with closing(SqliteStore(small_disk / "store.sqlite", create=True)) as store:
        lease = new_run(store, "r")
        store.append(batch(lease, 1)).wait()
        ballast = small_disk / "ballast"
        with pytest.raises(OSError, match="No space"):
            ballast.write_bytes(b"x" * 2**21)
        assert store.folder is not None
        with pytest.raises(StoreUnavailable, match="No space left"):
            ArtifactFiles(store.folder).write(b"y" * 100_000)
        with pytest.raises(StoreUnavailable, match="append failed: SQLITE_FULL"):
            append_until_it_fails(store, lease, 2)
        kept = len(seqs(store))
        ballast.unlink()
        with pytest.raises(StoreUnavailable, match="SQLITE_FULL"):
            store.append(batch(lease, kept + 1)).wait()  # nothing of that run is written from memory
        store.release(lease)
        again = store.acquire("r", HERE)
        assert isinstance(again, Lease)
        store.append(batch(again, kept + 1)).wait()
        assert seqs(store) == list(range(1, kept + 2))
        assert not list(store.folder.rglob("*unfinished*"))


def test_a_store_on_a_read_only_disk_is_read_and_left_alone(small_disk: Path) -> None:
    """Reading needs no lease and no right to write; what would write says why it cannot."""
    path = small_disk / "store.sqlite"
    with closing(SqliteStore(path, create=True)) as store:
        lease = new_run(store, "r")
        store.append(batch(lease, 1)).wait()
        store.release(lease)
    there = sorted(entry.name for entry in small_disk.iterdir())
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with closing(SqliteStore(path, create=False)) as store:
        assert seqs(store) == [1]
        assert [run.run_id for run in store.runs()] == ["r"]
        assert [finding.found for finding in store.check() if finding.check == "writable"] == [
            f"{path} is not writable: the store is read-only"
        ]
        with pytest.raises(StoreUnavailable, match=r"write failed: .* is not writable"):
            store.acquire("r", HERE)
    with pytest.raises(StoreUnavailable, match="is not writable"):
        SqliteStore(path, create=True)
    with pytest.raises(StoreUnavailable, match="create failed: Read-only file system") as refused:
        SqliteStore(small_disk / "other.sqlite", create=True)
    assert "resume" not in refused.value.hint  # which would say store-missing
    assert sorted(entry.name for entry in small_disk.iterdir()) == there


def test_records_that_only_the_wal_holds_are_never_read_past(small_disk: Path) -> None:
    """Without its -shm a WAL cannot be read on a read-only disk: older records would pass for the newest ones."""
    path = small_disk / "store.sqlite"
    with closing(SqliteStore(path, create=True)) as store:
        lease = new_run(store, "r")
        store.append(batch(lease, 1)).wait()
        for name in ("store.sqlite", "store.sqlite-wal"):
            (small_disk / f"copy-{name}").write_bytes((small_disk / name).read_bytes())
    for name in ("copy-store.sqlite", "copy-store.sqlite-wal"):
        assert (small_disk / name).stat().st_size
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(StoreUnavailable, match=r"the newest commits are in .*copy-store\.sqlite-wal"):
        SqliteStore(small_disk / "copy-store.sqlite", create=False)
