"""`fork`: a new run of the same family that keeps what was verified before a step; nothing applied is sent again."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from clock import MovableClock

from milepost import CannotTell, Found, Key, NotApplied, NotFound, Retry, effect, sleep, step, task
from milepost.errors import (
    BadName,
    CorruptRecord,
    OutcomeUnknown,
    RunBusy,
    RunEnded,
    StepFailed,
    StepUnknown,
    StoreWentBack,
)
from milepost.records.model import RunStatus
from milepost.records.seal import Sealer
from milepost.runtime.clock import SystemClock
from milepost.runtime.fork import fork_run
from milepost.runtime.leases import me
from milepost.runtime.verify import verify_run
from milepost.stores.contract import Batch, Head, Lease, StoredRecord
from milepost.stores.memory import MemoryStore
from milepost.stores.sqlite.store import SqliteStore


class Ledger:
    """What the outside world saw; the provider of these tests."""

    def __init__(self) -> None:
        self.sent: dict[str, str] = {}
        self.sends: list[str] = []
        self.ran: list[str] = []
        self.fails = False


LEDGER = Ledger()


def find(key: Key, item: str) -> Found[str] | NotFound | CannotTell:
    ref = LEDGER.sent.get(str(key))
    return NotFound() if ref is None else Found(ref)


@step
def collect(count: int) -> list[str]:
    LEDGER.ran.append("collect")
    return [f"i{n}" for n in range(count)]


@effect(key=lambda item: item, lookup=find, settle=timedelta(0))
def post(key: Key, item: str) -> str:
    LEDGER.sends.append(item)
    LEDGER.sent[str(key)] = f"ref-{item}"
    return f"ref-{item}"


@step
def announce(refs: list[str]) -> str:
    LEDGER.ran.append("announce")
    if LEDGER.fails:
        raise ValueError("no")
    return ", ".join(refs)


@step
def inside(item: str) -> str:
    LEDGER.ran.append(f"inside {item}")
    return post(item)


@task(name="fork-plan")
def plan(count: int) -> str:
    items = collect(count)
    first = post(items[0])
    second = inside(items[1])
    return announce([first, second])


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    LEDGER.__init__()  # type: ignore[misc]
    return SqliteStore(tmp_path / "store.sqlite", create=True)


def _fork(store: SqliteStore, run_id: str, step_path: str, new: str) -> None:
    fork_run(store, run_id, step_path, new, seal_key=None, clock=SystemClock(), environ=os.environ)


def test_fork_keeps_what_came_before_and_sends_nothing_again(store: SqliteStore) -> None:
    """The way to repeat a step of a finished run must not repeat its effects."""
    t = plan.options(store=store)
    assert t.run("r1", count=2) == "ref-i0, ref-i1"
    _fork(store, "r1", "inside", "r2")
    LEDGER.ran.clear()
    assert t.resume("r2") == "ref-i0, ref-i1"
    assert LEDGER.ran == ["inside i1", "announce"]
    assert LEDGER.sends == ["i0", "i1"]
    assert all(verdict.ok for verdict in verify_run(store, "r2", None, os.environ))


def test_fork_from_before_an_effect_on_the_line_asks_nothing(store: SqliteStore) -> None:
    """Effects applied after the step come along without making the plan look changed."""
    t = plan.options(store=store)
    t.run("r1", count=2)
    _fork(store, "r1", "collect", "r2")
    assert t.resume("r2") == "ref-i0, ref-i1"
    assert LEDGER.ran.count("collect") == 2
    assert LEDGER.sends == ["i0", "i1"]


def test_fork_ends_the_old_run(store: SqliteStore) -> None:
    """Two runs of one family must not both go on."""
    LEDGER.fails = True
    t = plan.options(store=store)
    with pytest.raises(StepFailed):
        t.run("r1", count=2)
    _fork(store, "r1", "announce", "r2")
    row = store.run("r1")
    assert row is not None
    assert row.progress.status is RunStatus.STOPPED
    with pytest.raises(RunEnded):
        t.resume("r1")
    LEDGER.fails = False
    assert t.resume("r2") == "ref-i0, ref-i1"


def test_fork_is_refused_while_the_run_is_held(store: SqliteStore) -> None:
    """A holder at work must not lose its run to a fork."""
    plan.options(store=store).run("r1", count=2)
    lease = store.acquire("r1", me(SystemClock()))
    assert lease is not None
    with pytest.raises(RunBusy, match="r1 is being worked on by process"):
        _fork(store, "r1", "collect", "r2")
    assert store.run("r2") is None


def test_fork_names_what_is_wrong_with_its_arguments(store: SqliteStore) -> None:
    """A step that is not there and a run id that is taken are named."""
    plan.options(store=store).run("r1", count=2)
    with pytest.raises(StepUnknown, match="no step 'nothing'"):
        _fork(store, "r1", "nothing", "r2")
    with pytest.raises(BadName, match="is there already"):
        _fork(store, "r1", "collect", "r1")


def test_fork_is_the_way_out_of_a_corrupt_journal(store: SqliteStore) -> None:
    """What can be trusted is kept; effects after that are in doubt: looked up before they are sent."""
    t = plan.options(store=store)
    t.run("r1", count=2)
    with closing(sqlite3.connect(store.path)) as connection, connection:
        lines = store.records("r1")
        bad = next(line.seq for line in lines if line.kind == "intent_recorded")
        connection.execute(
            "UPDATE journal SET body = CAST(replace(CAST(body AS TEXT), 'i0', 'i9') AS BLOB) WHERE seq = ?", (bad,)
        )
    LEDGER.ran.clear()
    with pytest.raises((CorruptRecord, RunEnded)):
        t.run("r1", count=2)
    _fork(store, "r1", "inside", "r2")
    assert t.resume("r2") == "ref-i0, ref-i1"
    assert LEDGER.sends == ["i0", "i1"]
    assert "collect" not in LEDGER.ran


def test_fork_passes_by_a_record_that_nobody_can_read_though_its_seal_fits(store: SqliteStore) -> None:
    """Without a key anybody can seal: what such a record does to whoever reads it must not close the way out."""
    t = plan.options(store=store)
    LEDGER.fails = True
    with pytest.raises(StepFailed):
        t.run("r1", count=2)
    lease, row = store.acquire("r1", me(SystemClock())), store.run("r1")
    assert isinstance(lease, Lease)
    assert row is not None
    sealer, last, seq, body = Sealer("r1", None), store.records("r1")[-1], row.head.seq + 1, b"[" * 100_000
    seal = sealer.seal(last.seal, seq, "", "step_started", body)
    head = Head(seq, sealer.head(row.head.seal, seq, "", seal))
    store.append(Batch("r1", lease.token, [StoredRecord(seq, "", "step_started", body, seal)], head)).wait()
    store.release(lease)
    with pytest.raises(CorruptRecord, match=f"record {seq} "):
        t.resume("r1")
    _fork(store, "r1", "announce", "r2")
    LEDGER.fails = False
    assert t.resume("r2") == "ref-i0, ref-i1"
    assert LEDGER.sends == ["i0", "i1"]


def test_in_doubt_without_a_lookup_a_person_decides(store: SqliteStore) -> None:
    """Neither lookup nor key lifetime: nobody guesses whether the corrupt tail had sent it."""

    @effect(key=lambda item: item)
    def blind(key: Key, item: str) -> str:
        LEDGER.sends.append(item)
        return item

    @task(name="blind-plan")
    def blind_plan() -> str:
        collect(1)
        return blind("i0")

    t = blind_plan.options(store=store)
    t.run("r1")
    with closing(sqlite3.connect(store.path)) as connection, connection:
        bad = next(line.seq for line in store.records("r1") if line.kind == "intent_recorded")
        connection.execute("UPDATE journal SET kind = 'step_started' WHERE seq = ?", (bad,))
    _fork(store, "r1", "blind", "r2")
    with pytest.raises(OutcomeUnknown, match="Nobody knows whether blind"):
        t.resume("r2")
    assert LEDGER.sends == ["i0"]


@step
def began(item: str) -> str:
    return item


class BackingUp(MovableClock):
    """Backs a store up when somebody begins to wait."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__()
        self.store, self.backup = store, store

    def about_to_wait(self, until: datetime) -> None:
        self.store.flush()
        self.backup = self.store.crash()
        super().about_to_wait(until)


@pytest.mark.parametrize("was_asked", [False, True])
@pytest.mark.parametrize("was_rejected", [False, True])
def test_fork_of_a_store_that_went_back_looks_before_it_sends(was_rejected: bool, was_asked: bool) -> None:
    """A restored backup knows nothing of what its run has sent since: neither does a fork of it.

    A resume that asked about it has moved the witness on; what it was asked about is as true as before.
    """
    LEDGER.__init__()  # type: ignore[misc]
    clock = BackingUp(MemoryStore())

    @effect(key=lambda item: item, lookup=find, settle=timedelta(0), retry=Retry(on=NotApplied))
    def send(key: Key, item: str) -> str:
        if was_rejected and not LEDGER.ran:
            LEDGER.ran.append("rejected")
            raise NotApplied("busy")
        LEDGER.sends.append(item)
        return LEDGER.sent.setdefault(str(key), f"ref-{item}")

    @task(name="sends")
    def sends(item: str) -> str:
        began(item)
        if not was_rejected:
            sleep(timedelta(minutes=1))
        return send(item)

    assert sends.options(store=clock.store, clock=clock).run("r1", "i7") == "ref-i7"
    backup = clock.backup
    if was_asked:
        with pytest.raises(StoreWentBack):
            sends.options(store=backup, clock=clock).resume("r1")
    fork_run(backup, "r1", "began", "r2", seal_key=None, clock=clock, environ=os.environ)
    assert sends.options(store=backup, clock=clock).resume("r2") == "ref-i7"
    assert LEDGER.sends == ["i7"]
