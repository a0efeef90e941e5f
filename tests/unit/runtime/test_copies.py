"""Of the copies of a store one works on a family at a time; within one file the lease decides."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from milepost.errors import RunBusy
from milepost.runtime.copies import CopyLock
from milepost.stores.contract import Holder, Lease

SINCE = "2026-11-02T09:00:00.000000+00:00"
LEASE = Lease("one", 7, Holder("here", "boot", 4242, SINCE))


class Copies:
    """Copies of one store on one machine."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.taken = ExitStack()

    def work(self, folder: str, family: str = "one") -> CopyLock:
        lock = CopyLock(str(self.path), family, folder)
        lock.take(LEASE, f"/{folder}/store.sqlite")
        self.taken.callback(lock.drop)
        return lock


@pytest.fixture
def copies(tmp_path: Path) -> Iterator[Copies]:
    copies = Copies(tmp_path / "not" / "yet" / "there")
    with copies.taken:
        yield copies


@pytest.mark.parametrize(("first", "second"), [("p", "q"), ("q", "p")])
def test_a_second_copy_is_told_who_works_on_the_run_and_where(copies: Copies, first: str, second: str) -> None:
    """Its byte may lie before the other's or behind it."""
    lock = copies.work(first)
    with pytest.raises(RunBusy) as told:
        copies.work(second)
    who = f"process 4242, in another copy of this store: /{first}/store.sqlite"
    assert str(told.value) == f"run one is being worked on by {who}, since {SINCE}"
    assert "Only one copy" in told.value.hint
    lock.drop()
    copies.work(second)


def test_the_same_file_and_other_families_are_not_kept_away(copies: Copies) -> None:
    """Whoever succeeds a frozen holder by the lease goes on, and keeps copies away when that one has died."""
    frozen = copies.work("p")
    copies.work("p")
    copies.work("q", "two")
    frozen.drop()
    with pytest.raises(RunBusy):
        copies.work("q")


def test_another_close_of_the_file_does_not_let_go(copies: Copies) -> None:
    """As it would with the locks of POSIX."""
    copies.work("p")
    copies.path.read_bytes()
    with pytest.raises(RunBusy):
        copies.work("q")


def test_a_forked_child_neither_frees_nor_keeps_it(copies: Copies) -> None:
    lock = copies.work("p")
    there, here = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.write(here[1], b".")
        os.close(there[1])
        os.read(there[0], 1)  # until the parent has looked
        os._exit(0)
    os.read(here[0], 1)
    with pytest.raises(RunBusy):
        copies.work("q")
    lock.drop()
    copies.work("q")
    for descriptor in (*there, *here):
        os.close(descriptor)
    assert os.waitpid(child, 0)[1] == 0


def test_one_file_of_bounded_size_serves_all_runs_of_a_store(copies: Copies) -> None:
    for number in range(300):
        copies.work("p", f"run {number}").drop()
    assert list(copies.path.parent.iterdir()) == [copies.path]
    assert copies.path.stat().st_size <= 2**20


def test_who_it_is_may_be_unknown(copies: Copies) -> None:
    """What was written is of somebody else, or was cut: no wrong name is told."""
    copies.work("p")
    for said in (b"", b"\xff" * 2**20, b" " * 2**20, b"[]" * 2**19):
        copies.path.write_bytes(said)
        with pytest.raises(RunBusy, match="by a process of this machine, in another copy of this store, since some"):
            copies.work("q")


@pytest.mark.parametrize("path", [None, "/dev/null/nowhere/copies"])
def test_where_nothing_can_be_kept_nobody_is_kept_away(path: str | None) -> None:
    """As with the witness, which a run says it has not got."""
    before = len(os.listdir("/proc/self/fd"))
    for file in ("p", "q"):
        lock = CopyLock(path, "one", file)
        lock.take(LEASE, file)
        lock.drop()
    assert len(os.listdir("/proc/self/fd")) == before
