"""What every test gets: a quick place to work, a state folder of its own for witnesses, nothing from outside."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import schedule

IN_MEMORY = Path("/dev/shm")
FROM_OUTSIDE = (
    *("MILEPOST_STORE", "MILEPOST_SEAL_KEY", "MILEPOST_RUN", "MILEPOST_CRASH_AT", "MILEPOST_CRASH_LOG"),
    "PYTHONUNBUFFERED",  # hides what a stream keeps until the end
)
"""What the environment of a machine may hold, and no test begins with."""
ROOM_BYTES = 1024**3
"""More than all tests together leave behind."""


def work_in_memory() -> None:
    """Let tests work in memory where there is room, unless TMPDIR names another place.

    A kill proves order, never fsync: what the page cache holds survives it. What a power cut leaves is rebuilt from a
    trace, and flushes are counted where they matter; to wait for a disk thousands of times would prove nothing more.
    """
    has_room = os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free > ROOM_BYTES
    if "TMPDIR" not in os.environ and has_room:
        os.environ["TMPDIR"] = tempfile.tempdir = str(IN_MEMORY)


work_in_memory()
# Started in the background, or under nohup, signals are ignored that tests send to what they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers > 1:
        schedule.sort(items, workers)


@pytest.fixture(autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    for name in FROM_OUTSIDE:
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture(scope="session", autouse=True)
def _agents_and_people_in_one_process() -> None:
    """Let a test's process work on runs and answer what they ask; in real processes the two are kept apart."""
    from milepost.runtime import children  # not above: a test of what an import brings must find nothing of ours

    children.plays_both = True


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Give a file system of its own, of two megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if done.returncode:
        pytest.skip(f"this user may not mount a small tmpfs: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)
