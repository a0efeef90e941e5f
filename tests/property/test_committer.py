"""The committer: no ticket lost, none waits without bound, one bad run harms no other."""

from __future__ import annotations

import sqlite3
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interrupts import Interrupts

from milepost.errors import LeaseLost, StoreUnavailable
from milepost.stores.contract import Batch, Head, Holder, Lease, NewRun, StoredRecord, Ticket
from milepost.stores.sqlite import committer as committing
from milepost.stores.sqlite.committer import COMMIT_BATCHES_MAX, Committer
from milepost.stores.sqlite.connection import connect_sqlite
from milepost.stores.sqlite.store import SqliteStore

PATIENCE_S = 60
AT = "2026-11-01T10:00:00Z"


def batch(run_id: str, seq: int, token: int = 1) -> Batch:
    return Batch(run_id, token, [StoredRecord(seq, "", "note", b"{}", b"s" * 32)], Head(seq, b"h" * 32))


class Faulty:
    """A real connection whose commits can fail: before they happened, after they did, or at an insert."""

    def __init__(self, path: str, faults: dict[int, str], committed: Callable[[], None] = lambda: None) -> None:
        self._inner = connect_sqlite(path)
        self._faults = faults
        self._committed = committed
        self._commits = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def execute(self, sql: str, values: Any = ()) -> sqlite3.Cursor:
        if sql.startswith("INSERT INTO journal") and self._faults.get(self._commits + 1) == "insert":
            del self._faults[self._commits + 1]
            raise sqlite3.OperationalError("database or disk is full")
        if sql != "COMMIT":
            return self._inner.execute(sql, values)
        self._commits += 1
        fault = self._faults.get(self._commits)
        if fault == "before":
            raise sqlite3.OperationalError("disk I/O error")
        done = self._inner.execute(sql)
        self._committed()
        if fault == "after":
            raise sqlite3.OperationalError("disk I/O error")
        return done


def open_faulty(folder: Path, faults: dict[int, str], committed: Callable[[], None] = lambda: None) -> SqliteStore:
    SqliteStore(folder / "store.sqlite", create=True).close()
    connect: Any = partial(Faulty, faults=faults, committed=committed)
    return SqliteStore(folder / "store.sqlite", create=False, connect=connect)


def begin(store: SqliteStore, run_id: str) -> Lease:
    lease = store.create_run(NewRun(run_id, "task", run_id, None, AT, Holder("here", "boot", 1, AT)))
    assert lease is not None
    return lease


class Walk:
    """One run in a thread of its own: appends, and waits, asks or leaves each ticket as its plan says."""

    def __init__(self, store: SqliteStore, run_id: str, plan: Sequence[str]) -> None:
        self.run_id, self.plan, self.store = run_id, plan, store
        self.tickets: list[Ticket] = []
        self.called: Counter[int] = Counter()
        self.thread = threading.Thread(target=self.walk)

    def walk(self) -> None:
        for seq, how in enumerate(self.plan, 1):
            ticket = self.store.append(batch(self.run_id, seq))
            self.tickets.append(ticket)
            if how == "ask":
                ticket.add_done_callback(lambda _, seq=seq: self.called.update([seq]))
            if how == "wait" and ended(ticket) is not None:
                return

    def outcomes(self) -> list[BaseException | None]:
        return [ended(ticket) for ticket in self.tickets]


def ended(ticket: Ticket) -> BaseException | None:
    try:
        ticket.wait()
    except (StoreUnavailable, LeaseLost) as error:
        return error
    return None


def run_all(walks: Sequence[Walk]) -> None:
    for walk in walks:
        walk.thread.start()
    for walk in walks:
        walk.thread.join(PATIENCE_S)
        assert not walk.thread.is_alive()


plans = st.lists(st.lists(st.sampled_from(["leave", "wait", "ask"]), min_size=1, max_size=8), min_size=1, max_size=5)
faults = st.dictionaries(st.integers(1, 12), st.sampled_from(["before", "after", "insert"]), max_size=2)


@settings(max_examples=60, deadline=None)
@given(plans=plans, faults=faults)
def test_each_ticket_ends_once_and_each_run_is_a_prefix(plans: list[list[str]], faults: dict[int, str]) -> None:
    """What was reported durable is there; what is there is a prefix; after a failure nothing follows."""
    with tempfile.TemporaryDirectory() as folder:
        created = {len(plans) + commit: fault for commit, fault in faults.items()}
        store = open_faulty(Path(folder), created)
        walks = [Walk(store, begin(store, f"r{n}").run_id, plan) for n, plan in enumerate(plans)]
        run_all(walks)
        store.close()
        again = SqliteStore(Path(folder, "store.sqlite"), create=False)
        for walk in walks:
            outcomes = walk.outcomes()
            good = outcomes.index(next(filter(None, outcomes))) if any(outcomes) else len(outcomes)
            assert all(outcomes[good:]), "something was reported durable after a failure"
            seqs = [record.seq for record in again.records(walk.run_id)]
            assert seqs == list(range(1, len(seqs) + 1))
            assert len(seqs) >= good
            asked = {seq for seq, how in enumerate(walk.plan[: len(walk.tickets)], 1) if how == "ask"}
            assert walk.called == Counter(asked)
        again.close()


@pytest.mark.parametrize("fault", ["before", "after", "insert"])
def test_a_failed_commit_fails_its_runs_until_they_are_acquired_anew_and_no_other(tmp_path: Path, fault: str) -> None:
    store = open_faulty(tmp_path, {3: fault})
    bad, good = begin(store, "bad"), begin(store, "good")
    with pytest.raises(StoreUnavailable, match="disk"):
        store.append(batch("bad", 1)).wait()
    with pytest.raises(StoreUnavailable, match="disk"):
        store.append(batch("bad", 2)).wait()
    store.append(batch("good", 1)).wait()
    store.release(bad)
    lease = store.acquire("bad", good.holder)
    assert isinstance(lease, Lease)
    there = len(store.outline("bad").places)
    assert there == (1 if fault == "after" else 0)
    store.append(batch("bad", there + 1, lease.token)).wait()
    store.close()


def test_what_nobody_waits_for_is_committed_all_the_same(tmp_path: Path) -> None:
    committed = threading.Event()
    store = open_faulty(tmp_path, {}, committed.set)
    begin(store, "r")
    committed.clear()
    store.append(batch("r", 1))
    assert committed.wait(PATIENCE_S)
    store.close()


# ── the queue alone, without a database ──


def fine(batches: Sequence[Batch]) -> list[BaseException | None]:
    return [None for _ in batches]


def test_a_commit_is_bounded_and_the_order_kept() -> None:
    sizes: list[int] = []
    seen: list[int] = []

    def commit(batches: Sequence[Batch]) -> list[BaseException | None]:
        sizes.append(len(batches))
        seen.extend(b.head.seq for b in batches)
        return fine(batches)

    committer = Committer(commit, "here")
    count = 2 * COMMIT_BATCHES_MAX + 5
    tickets = [committer.append(batch("r", seq)) for seq in range(1, count + 1)]
    tickets[-1].wait()
    committer.close()
    assert max(sizes) <= COMMIT_BATCHES_MAX
    assert seen == list(range(1, count + 1))


def test_the_thread_is_not_woken_for_each_append_that_its_caller_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    """One run alone pays no hand-over: awake, the thread looks now and then by itself."""
    monkeypatch.setattr(committing, "TICK_S", PATIENCE_S)
    monkeypatch.setattr(committing, "IDLE_TICKS_MAX", 0)
    woken: list[None] = []

    class Counted(Committer):
        def _wake(self) -> None:
            woken.append(None)
            super()._wake()

    committer = Counted(fine, "here")
    for seq in range(1, 3001):
        committer.append(batch("r", seq)).wait()
    committer.close()
    assert len(woken) == 1


def test_no_ticket_is_settled_while_its_commit_is_under_way() -> None:
    """Whoever waits for it may act on what is not durable yet."""
    settled: list[bool] = []
    queued = threading.Lock()

    def commit(batches: Sequence[Batch]) -> list[BaseException | None]:
        with queued:
            settled.extend(ticket.settled for ticket in tickets if ticket.batch in batches)
        return fine(batches)

    committer = Committer(commit, "here")
    with queued:
        tickets = [committer.append(batch("r", number)) for number in (1, 2)]
    tickets[-1].wait()
    assert settled == [False, False]
    assert [ticket.settled for ticket in tickets] == [True, True]
    committer.close()


def test_who_waits_behind_a_leader_leads_next() -> None:
    """A leader leaves when its own ticket is settled; somebody in the queue must go on."""
    entered, leave = threading.Event(), threading.Event()

    def commit(batches: Sequence[Batch]) -> list[BaseException | None]:
        entered.set()
        assert leave.wait(PATIENCE_S)
        return fine(batches)

    committer = Committer(commit, "here")
    first = threading.Thread(target=committer.append(batch("a", 1)).wait)
    first.start()
    assert entered.wait(PATIENCE_S)
    others = [threading.Thread(target=committer.append(batch("b", n)).wait) for n in range(1, 6)]
    asked = threading.Event()
    committer.append(batch("c", 1)).add_done_callback(lambda _: asked.set())
    for thread in others:
        thread.start()
    leave.set()
    for thread in (first, *others):
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    assert asked.wait(PATIENCE_S)
    committer.close()


def test_an_interrupted_leader_leaves_no_ticket_behind() -> None:
    """Ctrl-C while committing: its own wait is interrupted, every other ticket is *cannot tell*, the next goes on."""
    interrupt = [True]

    def commit(batches: Sequence[Batch]) -> list[BaseException | None]:
        if interrupt.pop():
            raise KeyboardInterrupt
        return fine(batches)

    interrupt.insert(0, False)
    committer = Committer(commit, "here")
    other, own = committer.append(batch("a", 1)), committer.append(batch("b", 1))
    with pytest.raises(KeyboardInterrupt):
        own.wait()
    with pytest.raises(StoreUnavailable, match="cannot be told"):
        other.wait()
    committer.append(batch("c", 1)).wait()
    committer.close()


def test_a_callback_that_fails_harms_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", reported.append)
    committer = Committer(fine, "here")
    told: list[BaseException | None] = []
    first, second = committer.append(batch("a", 1)), committer.append(batch("b", 1))
    asked = threading.Event()

    def fail(_: BaseException | None) -> None:
        raise RuntimeError("the loop is closed")

    first.add_done_callback(fail)
    second.add_done_callback(lambda error: (told.append(error), asked.set())[0])
    assert asked.wait(PATIENCE_S)
    committer.close()
    assert told == [None]
    assert [report.exc_type for report in reported] == [RuntimeError]


def test_two_threads_may_wait_for_one_ticket() -> None:
    committer = Committer(fine, "here")
    ticket = committer.append(batch("a", 1))
    threads = [threading.Thread(target=ticket.wait) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    committer.close()


def test_a_thread_that_was_interrupted_at_its_gate_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who goes on lets the next one go on; one that is not there any more cannot."""
    monkeypatch.setattr(committing, "GATE_S", 0.01)
    entered, leave = threading.Event(), threading.Event()

    def commit(batches: Sequence[Batch]) -> list[BaseException | None]:
        entered.set()
        assert leave.wait(PATIENCE_S)
        return fine(batches)

    committer = Committer(commit, "here")
    tickets = [committer.append(batch("a", seq)) for seq in range(1, 7)]
    threads = [threading.Thread(target=ticket.wait, daemon=True) for ticket in (tickets[0], *tickets[2:])]
    threads[0].start()
    assert entered.wait(PATIENCE_S)
    assert committer._gate_of(tickets[1]) is not None  # the first gate: nobody waits at it
    for thread in threads[1:]:
        thread.start()
    while not all(ticket.gates for ticket in tickets[1:]):
        continue
    leave.set()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    committer.close()


class Line:
    """A leader at its commit and others in line behind it, for a batch of that commit and for later ones."""

    def __init__(self, *, main_leads: bool) -> None:
        self.committer = Committer(self.commit, "here")
        self.behind: list[Ticket] = []
        self.held: list[threading.Lock] = []
        self.is_led = self.is_asked = False
        self.is_made, self.is_over = threading.Lock(), threading.Lock()  # taken until it is so
        self.is_over.acquire()
        self.is_told, self.is_entered = threading.Event(), threading.Event()
        waits = (partial(self.later, 1), partial(self.later, 2), lambda: self.other.wait())
        self.threads = [self.thread(each) for each in waits]
        with self.is_made:
            first, second = (self.committer.append(batch("a", seq)) for seq in (1, 2))
            self.mine, self.other = (first, second) if main_leads else (second, first)
        if not main_leads:
            self.go(1)  # or the committer's thread was faster
            assert self.is_entered.wait(PATIENCE_S)

    def thread(self, waits: Callable[[], None]) -> threading.Thread:
        held = threading.Lock()
        held.acquire()
        self.held.append(held)

        def goes() -> None:
            held.acquire()
            with suppress(StoreUnavailable):
                waits()

        thread = threading.Thread(target=goes, daemon=True)
        thread.start()
        return thread

    def later(self, seq: int) -> None:
        ticket = self.committer.append(batch("b", seq))
        self.behind.append(ticket)
        ticket.wait()

    def go(self, count: int) -> None:
        with suppress(IndexError):  # all go
            for _ in range(count):
                self.held.pop().release()

    def commit(self, batches: Sequence[Batch]) -> list[BaseException | None]:
        if not self.is_led:
            self.is_led = True
            with self.is_made:
                pass
            self.mine.add_done_callback(lambda _: self.is_told.set())
            self.is_asked = True
            self.go(len(self.threads))
            if threading.current_thread() is not threading.main_thread():
                self.is_entered.set()
            while not (self.is_in_line() or self.is_over.acquire(timeout=0.001)):
                continue
        return fine(batches)

    def is_in_line(self) -> bool:
        leads = threading.current_thread() is threading.main_thread()
        behind = [*self.behind, self.other] if leads else [*self.behind, self.mine]
        return len(behind) == 3 and all(ticket.gates for ticket in behind)

    def comes_to_its_end(self) -> bool:
        self.is_over.release()
        self.go(len(self.threads))
        for thread in self.threads:
            thread.join(PATIENCE_S)
            if thread.is_alive():
                return False
        return not self.is_asked or self.is_told.wait(PATIENCE_S)


@pytest.mark.parametrize("main_leads", [True, False])
def test_a_signal_handler_that_raises_at_any_place_leaves_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch, main_leads: bool
) -> None:
    """Neither those behind a leader, nor those behind one who waits as they do."""
    monkeypatch.setattr(committing, "TICK_S", 0.005)
    monkeypatch.setattr(committing, "GATE_S", 0.02)
    interrupts, line = Interrupts(), Line(main_leads=main_leads)
    while interrupts.once_more(line.mine.wait):
        assert line.comes_to_its_end(), interrupts.where
        line.committer.close()
        line = Line(main_leads=main_leads)
    line.committer.close()
    assert interrupts.count > 10
