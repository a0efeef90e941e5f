"""A family of runs is a line: what one fork sends no other fork of the same run sends again."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from clock import MovableClock

from milepost import Found, Key, NotFound, effect, step, task
from milepost.errors import (
    AlreadyForked,
    BadName,
    CorruptRecord,
    LeaseTaken,
    RunBusy,
    RunEnded,
    RunUnstarted,
    StepFailed,
)
from milepost.runtime import fork
from milepost.runtime.fork import fork_run
from milepost.runtime.trust import read_trusted
from milepost.stores.contract import Store
from milepost.stores.memory import MemoryStore
from milepost.stores.sqlite.store import SqliteStore

KEY = b"k" * 32


class Killed(BaseException):
    """Stands for the death of a process: nothing is given back."""


class Payroll:
    """A task whose first run fails before it pays; each fork of it can pay."""

    def __init__(self, **options: Any) -> None:
        self.sent: list[str] = []
        self.is_ready = False
        self.is_open = True  # else it ends without paying

        @step
        def counted(count: int) -> int:
            return count

        @step
        def ready(count: int) -> int:
            if not self.is_ready:
                raise ValueError("not yet")
            return count

        @effect(key=lambda who: who, **options)
        def pay(key: Key, who: str) -> str:
            self.sent.append(who)
            return who

        @task
        def payroll(count: int) -> list[str]:
            return [pay(f"w{n}") for n in range(ready(counted(count))) if self.is_open]

        self.task = payroll


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "store.sqlite", create=True)


@pytest.fixture
def payroll(store: Store, clock: MovableClock) -> Payroll:
    return failed(Payroll(), store, clock)


def failed(payroll: Payroll, store: Store, clock: MovableClock, **options: Any) -> Payroll:
    with pytest.raises(StepFailed):
        payroll.task.options(store=store, clock=clock, **options).run("A", 2)
    payroll.is_ready = True
    return payroll


def forks(
    store: Store, clock: MovableClock, run_id: str, new: str, at: str = "ready", key: bytes | None = None
) -> None:
    fork_run(store, run_id, at, new, seal_key=key, clock=clock, environ={}, lease_s=0.01)


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize("options", [{}, {"scope": "task"}, {"key_lifetime": timedelta(days=1)}])
def test_a_run_that_was_forked_is_forked_no_more(
    store: Store, clock: MovableClock, options: dict[str, Any], key: bytes | None
) -> None:
    """A second fork of it knows nothing of what the first has sent."""
    payroll = failed(Payroll(**options), store, clock, seal_key=key)
    forks(store, clock, "A", "B", key=key)
    assert payroll.task.options(store=store, clock=clock, seal_key=key).resume("B") == ["w0", "w1"]
    with pytest.raises(AlreadyForked, match="newest run of its family is B") as refused:
        forks(store, clock, "A", "C", key=key)
    assert "milepost fork B --from STEP" in refused.value.hint
    assert store.run("C") is None
    forks(store, clock, "B", "C", key=key)
    assert payroll.task.options(store=store, clock=clock, seal_key=key).resume("C") == ["w0", "w1"]
    assert payroll.sent == ["w0", "w1"]


def test_the_newest_is_named_however_long_the_line_is(store: Store, clock: MovableClock, payroll: Payroll) -> None:
    forks(store, clock, "A", "B")
    forks(store, clock, "B", "C", at="counted")
    for old in "AB":
        with pytest.raises(AlreadyForked, match="is C"):
            forks(store, clock, old, "D", at="counted")


def test_a_pruned_fork_is_remembered(store: Store, clock: MovableClock, payroll: Payroll) -> None:
    """Its records are gone, what it sent is not."""
    forks(store, clock, "A", "B")
    payroll.task.options(store=store, clock=clock).resume("B")
    assert store.prune(["B"], "2026-11-30T00:00:00+00:00") == 1
    with pytest.raises(AlreadyForked, match="is B") as refused:
        forks(store, clock, "A", "C")
    assert "Start a new run" in refused.value.hint


@pytest.mark.parametrize("is_lost", [False, True], ids=["looked-up", "not-found"])
def test_a_fork_that_a_restored_backup_does_not_know_of_leaves_its_sends_in_doubt(
    clock: MovableClock, tmp_path: Path, is_lost: bool
) -> None:
    """A run that was done gets no record by its fork: only the witness says that there was one; it may have paid."""
    store, environ = MemoryStore(), {"XDG_STATE_HOME": str(tmp_path)}
    options: dict[str, Any] = {"clock": clock, "environ": environ}
    found: list[str] = []

    def look_up(key: Key, who: str) -> Found[str] | NotFound:
        found.append(who)
        return Found(who) if not is_lost else NotFound()

    payroll = Payroll(lookup=look_up, settle=timedelta(0))
    payroll.is_ready, payroll.is_open = True, False

    def resumed(store: Store, run_id: str) -> Any:
        return payroll.task.options(store=store, **options).resume(run_id)

    payroll.task.options(store=store, **options).run("A", 1)
    backup = store.crash()
    payroll.is_open = True
    for old, new in pairwise(["A", "B", "C"]):
        fork_run(store, old, "ready", new, seal_key=None, **options)
        assert resumed(store, new) == ["w0"]
    assert (payroll.sent, found) == (["w0"], []), "an honest store is not accused"

    fork_run(backup, "A", "ready", "D", seal_key=None, **options)
    assert resumed(backup, "D") == ["w0"]
    assert (len(payroll.sent), found) == (1 + is_lost, ["w0"])


def test_a_refused_fork_leaves_the_run_as_it_is(store: Store, clock: MovableClock, payroll: Payroll) -> None:
    forks(store, clock, "A", "B")
    before = store.run("A")
    with pytest.raises(AlreadyForked):
        forks(store, clock, "A", "C")
    after = store.run("A")
    assert before is not None
    assert after is not None
    assert (before.head, before.progress, before.cancel) == (after.head, after.progress, after.cancel)


# ── a fork that dies, stands still or races ─────────────────────────────────────────────────────────


def die(*_: object) -> None:
    raise Killed


def half_made(store: Store, clock: MovableClock, monkeypatch: pytest.MonkeyPatch, before: str) -> None:
    """Leave a fork B of A that died before it called `before`: the new run is there without records."""
    with monkeypatch.context() as patch:
        patch.setattr(fork, before, die) if hasattr(fork, before) else patch.setattr(fork.Family, before, die)
        with pytest.raises(Killed):
            forks(store, clock, "A", "B")
    row = store.run("B")
    assert row is not None
    assert row.head.seq == 0


@pytest.mark.parametrize("new", ["B", "C"])
@pytest.mark.parametrize("before", ["follow", "Opened"])
def test_a_half_made_fork_is_no_fork(
    store: Store,
    clock: MovableClock,
    payroll: Payroll,
    monkeypatch: pytest.MonkeyPatch,
    before: str,
    new: str,
) -> None:
    """It has kept nothing, and the way out leads past it, under another name or its own."""
    half_made(store, clock, monkeypatch, before)
    forks(store, clock, "A", new)
    assert payroll.task.options(store=store, clock=clock).resume(new) == ["w0", "w1"]
    with pytest.raises((AlreadyForked, BadName)):
        forks(store, clock, "A", "B")
    assert payroll.sent == ["w0", "w1"]


def test_a_half_made_fork_does_not_begin_as_a_run_of_its_own(
    store: Store, clock: MovableClock, payroll: Payroll, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It belongs to a family whose records it does not have."""
    half_made(store, clock, monkeypatch, "Opened")
    for start in (payroll.task.options(store=store, clock=clock).resume, _started(payroll, store, clock)):
        with pytest.raises(RunUnstarted):
            start("B")
    assert payroll.sent == []


def _started(payroll: Payroll, store: Store, clock: MovableClock) -> Callable[[str], object]:
    return lambda run_id: payroll.task.options(store=store, clock=clock).run(run_id, 2)


@pytest.mark.parametrize("before", ["create_run", "follow", "append"])
def test_a_fork_that_stood_still_writes_nothing_once_another_took_its_place(
    store: Store, clock: MovableClock, payroll: Payroll, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    """Whoever was asleep between two steps of a fork must not wake up as a second one."""
    asleep, awake = threading.Event(), threading.Event()
    place: Any = fork.Family if before == "follow" else type(store)
    really = getattr(place, before)

    def slept(self: object, first: Any, *more: object) -> object:
        if threading.current_thread() is sleeper and getattr(first, "run_id", "") == "B":
            asleep.set()
            awake.wait(10)
        return really(self, first, *more)

    ended: list[BaseException] = []

    def sleep_in_a_fork() -> None:
        try:
            forks(store, clock, "A", "B")
        except (AlreadyForked, LeaseTaken) as error:
            ended.append(error)

    sleeper = threading.Thread(target=sleep_in_a_fork)
    monkeypatch.setattr(place, before, slept)
    sleeper.start()
    assert asleep.wait(10)
    with pytest.raises(RunBusy):
        forks(store, clock, "A", "C")
    clock.move(timedelta(minutes=1))
    forks(store, clock, "A", "C")
    awake.set()
    sleeper.join(10)
    assert len(ended) == 1
    row = store.run("B")
    assert row is None or row.head.seq == 0
    assert payroll.task.options(store=store, clock=clock).resume("C") == ["w0", "w1"]


def test_of_many_forks_at_once_one_is_made(store: Store, clock: MovableClock, payroll: Payroll) -> None:
    outcomes: list[str] = []
    together = threading.Barrier(4)

    def one(new: str) -> None:
        together.wait(10)
        try:
            forks(store, clock, "A", new)
            outcomes.append("forked")
        except (AlreadyForked, RunBusy) as error:
            outcomes.append(error.code)

    threads = [threading.Thread(target=one, args=(f"F{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert (len(outcomes), outcomes.count("forked")) == (4, 1)


# ── a run that cannot be trusted ────────────────────────────────────────────────────────────────────


def damage(path: Path, run_id: str, old: str, new: str) -> None:
    sql = (
        "UPDATE journal SET body = CAST(replace(CAST(body AS TEXT), ?, ?) AS BLOB) "
        "WHERE run = (SELECT number FROM runs WHERE run_id = ?)"
    )
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql, (old, new, run_id))


def test_a_corrupt_run_that_was_forked_does_not_go_on_when_it_is_mended(tmp_path: Path, clock: MovableClock) -> None:
    """Its end could not be written, and two runs of a family must not both go on."""
    store = SqliteStore(tmp_path / "store.sqlite", create=True)
    payroll = failed(Payroll(), store, clock)
    damage(store.path, "A", "ValueError", "VelueError")
    with pytest.raises(CorruptRecord):
        payroll.task.options(store=store, clock=clock).resume("A")
    forks(store, clock, "A", "B")
    with pytest.raises(AlreadyForked, match="is B"):
        forks(store, clock, "A", "C")
    damage(store.path, "A", "VelueError", "ValueError")
    assert read_trusted(store, "A", None).refusal is None
    with pytest.raises(RunEnded, match="cancelled"):
        payroll.task.options(store=store, clock=clock).resume("A")
    assert payroll.sent == []


def test_the_newest_is_forked_however_corrupt_it_is(tmp_path: Path, clock: MovableClock) -> None:
    """That is the way out of it; one of the family that was forked before is none."""
    store = SqliteStore(tmp_path / "store.sqlite", create=True)
    payroll = failed(Payroll(), store, clock)
    forks(store, clock, "A", "B")
    payroll.task.options(store=store, clock=clock).resume("B")
    damage(store.path, "B", "w1", "w9")
    with pytest.raises(AlreadyForked):
        forks(store, clock, "A", "C")
    forks(store, clock, "B", "C")


def test_a_forged_place_in_the_family_is_refused(tmp_path: Path, clock: MovableClock) -> None:
    store = SqliteStore(tmp_path / "store.sqlite", create=True)
    failed(Payroll(), store, clock, seal_key=KEY)
    forks(store, clock, "A", "B", key=KEY)
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("UPDATE claims SET run_id = 'A' WHERE key = 'family:A'")
    with pytest.raises(CorruptRecord, match="family:A"):
        forks(store, clock, "A", "C", key=KEY)


# ── where a fork may begin ──────────────────────────────────────────────────────────────────────────


def test_a_fork_may_begin_before_an_effect(store: Store, clock: MovableClock, payroll: Payroll) -> None:
    """`show` lists effects among the steps; what was applied stays applied all the same."""
    forks(store, clock, "A", "B")
    payroll.task.options(store=store, clock=clock).resume("B")
    forks(store, clock, "B", "C", at="pay[w1]")
    assert payroll.task.options(store=store, clock=clock).resume("C") == ["w0", "w1"]
    assert payroll.sent == ["w0", "w1"]
