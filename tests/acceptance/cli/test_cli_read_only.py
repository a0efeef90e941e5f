"""A store on a disk that cannot be written: everything that only looks works, everything else says why not."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_shell import Shell

READS = (
    ("runs",),
    ("show", "one"),
    ("journal", "one"),
    ("verify", "one"),
    ("brief", "one"),
    ("inbox",),
    ("resume", "one", "--check"),
)


@pytest.fixture
def read_only(shell: Shell, tmp_path: Path) -> Iterator[str]:
    """Return the path of a store with a run that ended, on a disk that is read-only now."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    if (
        mount is None
        or subprocess.run([mount, "-t", "tmpfs", "tmpfs", disk], capture_output=True, check=False).returncode
    ):
        pytest.skip("this user may not mount a tmpfs")
    store = str(disk / "store.sqlite")
    try:
        ended = shell.run("run", "letters.py:letters", 'names=["ann"]', "--run-id", "one", MILEPOST_STORE=store)
        assert ended.status == 0
        subprocess.run([mount, "-o", "remount,ro", disk], check=True)
        yield store
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_a_read_only_store_is_looked_at_with_every_reading_verb(shell: Shell, read_only: str) -> None:
    """An auditor gets a copy on a disk of theirs, and needs no right to change it."""
    for words in READS:
        ended = shell.run(*words, MILEPOST_STORE=read_only)
        assert ended.status == 0, (words, ended.err)


def test_doctor_reports_a_read_only_store_in_a_row(shell: Shell, read_only: str) -> None:
    ended = shell.run("doctor", "--json", MILEPOST_STORE=read_only)
    found = {finding["check"]: finding for finding in ended.json["findings"]}
    assert ended.status == 3
    assert not found["writable"]["ok"]
    assert "Make " in found["writable"]["hint"]
    assert found["integrity"]["ok"]


def test_a_writing_verb_on_a_read_only_store_is_6(shell: Shell, read_only: str) -> None:
    for words in (("run", "letters.py:letters", "names=[]", "--run-id", "two"), ("prune", "one", "--yes")):
        ended = shell.run(*words, MILEPOST_STORE=read_only)
        assert (ended.status, ended.err.splitlines()[-2].partition(":")[0]) == (6, "store-unavailable"), ended.err
        assert "is not writable" in ended.err
