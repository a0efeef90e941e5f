"""A store on a disk that cannot be written, or is full: what only looks works, everything else says why not."""

from __future__ import annotations

import subprocess
from contextlib import suppress
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
    ("permissions", "one"),
    ("audit", "one"),
    ("resume", "one", "--check"),
)
ASKING = """
from milepost import Key, effect, task

@effect(key=lambda who: who, approve="before")
def pay(key: Key, who: str) -> None: ...

@task
def paying() -> None:
    pay.map(["ann", "bob"])
"""


@pytest.fixture
def store(shell: Shell, small_disk: Path) -> str:
    """Return the path of a store there: run one ended, run two asks two questions."""
    store = str(small_disk / "store.sqlite")
    (shell.folder / "asking.py").write_text(ASKING, encoding="utf-8")
    ended = shell.run("run", "letters.py:letters", 'names=["ann"]', "--run-id", "one", MILEPOST_STORE=store)
    asks = shell.run("run", "asking.py:paying", "--run-id", "two", MILEPOST_STORE=store)
    assert (ended.status, asks.status) == (0, 4)
    return store


@pytest.fixture
def read_only(store: str, small_disk: Path) -> str:
    """Return that store, on a disk that is read-only now."""
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    return store


@pytest.fixture
def full(store: str, small_disk: Path) -> str:
    """Return that store, on a disk with not a byte left."""
    with (small_disk / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
        while True:
            ballast.write(bytes(4096))
    return store


def test_a_store_on_a_full_disk_is_looked_at_with_every_reading_verb(shell: Shell, full: str) -> None:
    """SQLite wants room beside it even to read; whoever looks for what fills the disk must see what is asked, too."""
    for words in READS:
        ended = shell.run(*words, MILEPOST_STORE=full)
        assert (ended.status, "The disk is full" in ended.err) == (0, True), (words, ended.err)
    ended = shell.run("doctor", "--json", MILEPOST_STORE=full)
    found = {finding["check"]: finding for finding in ended.json["findings"] if not finding["ok"]}
    assert (ended.status, sorted(found)) == (3, ["free space", "writable"])
    assert "Free space" in found["writable"]["hint"]


@pytest.mark.parametrize("words", [("resume", "two"), ("answer", "--run", "two", "approve"), ("cancel", "two")])
def test_a_writing_verb_on_a_full_disk_is_6(shell: Shell, full: str, words: tuple[str, ...]) -> None:
    ended = shell.run(*words, MILEPOST_STORE=full)
    assert (ended.status, "Free space" in ended.err, "Traceback" in ended.err) == (6, True, False), ended.err


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
    assert found["permissions"]["ok"], "its mode is right, and no chmod makes it writable"


def test_a_writing_verb_on_a_read_only_store_is_6(shell: Shell, read_only: str) -> None:
    for words in (
        ("run", "letters.py:letters", "names=[]", "--run-id", "three"),
        ("prune", "one", "--yes"),
        ("answer", "--run", "two", "approve"),
        ("answer", "--run", "two", "decline"),
    ):
        ended = shell.run(*words, MILEPOST_STORE=read_only)
        assert (ended.status, ended.err.count("store-unavailable:")) == (6, 1), ended.err
        assert "is not writable" in ended.err
