"""Makes the appends of many runs durable in shared commits: who waits commits for all, else a thread does.

A caller that waits while nobody commits becomes the leader and commits everything queued, so one run alone
pays no thread hand-off. What nobody waits for is committed by a thread within FLUSH_S. An exception of a signal
handler ends a leader between any two calls: its lead goes with it, and whoever leads next tells what it left.
Knows no SQL: it is given a function that commits batches and says how each fared. Called by SqliteStore.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from typing import TypeAlias

from milepost.errors import StoreUnavailable
from milepost.stores.contract import FLUSH_S, Batch, Lease
from milepost.stores.sqlite.open_files import forked

COMMIT_BATCHES_MAX = 256
"""Batches that share one commit at most; bounds how long another writer waits for its turn."""
TICK_S = FLUSH_S / 2
"""The thread looks this often; a batch that saw two looks and no commit is committed by it."""
IDLE_TICKS_MAX = 40
"""Looks at an empty queue after which the thread sleeps until the next append."""
GATE_S = 1.0
"""Longest wait at a gate before one looks who leads: who was interrupted there, or while leading, opens none."""
JOIN_S = 5.0
"""Seconds `close` waits for the thread to leave."""

Commit: TypeAlias = Callable[[Sequence[Batch]], Sequence[BaseException | None]]
Callback: TypeAlias = Callable[[BaseException | None], None]


class AppendTicket:
    """The promise of one append; settled exactly once, by whoever leads."""

    __slots__ = ("_committer", "batch", "callbacks", "error", "gates", "settled", "tick")

    def __init__(self, committer: Committer, batch: Batch, tick: int) -> None:
        self._committer = committer
        self.batch = batch
        self.tick = tick
        self.settled = False
        self.error: BaseException | None = None
        self.gates: Sequence[threading.Lock] = ()  # one per waiting thread, opened to let it go on
        self.callbacks: Sequence[Callback] = ()

    def wait(self) -> None:
        """Block until the batch is durable. Raises: LeaseLost (fenced), StoreUnavailable (failed or cannot tell)."""
        if not self.settled:
            self._committer.settle(self)
        if self.error is not None:
            raise self.error

    def add_done_callback(self, callback: Callback) -> None:
        """Ask for a commit soon and call back once, at once or from the committer's thread."""
        if not self._committer.ask(self, callback):
            callback(self.error)

    def gave_back(self, lease: Lease) -> bool:
        """Say whether a lease was given back with this batch."""
        return self.settled and self.error is None and self.batch.gives_back and self.batch.token == lease.token


class Committer:
    """A queue of batches and the right to commit them, which one thread has at a time."""

    def __init__(self, commit: Commit, location: str) -> None:
        self._commit = commit
        self._location = location
        self._queue: deque[AppendTicket] = deque()
        self._gates: deque[threading.Lock] = deque()  # of threads that may go on, to be opened one by one
        self._newest: AppendTicket | None = None
        self._over = ""  # why nothing more is taken
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._lead = threading.Lock()  # both by `with` alone: no signal is heard between taking them and its block
        self._due = threading.Condition(self._lock)
        self._out: deque[AppendTicket] = deque()  # being committed, or left there by a leader that was interrupted
        self._told: list[AppendTicket] = []  # settled, and to be called back by the thread, which no signal interrupts
        self._asked = False  # a callback waits in the queue
        self._asleep = True
        self._tick = 0
        self._thread: threading.Thread | None = None

    def append(self, batch: Batch) -> AppendTicket:
        """Queue a batch. Crash: it may be lost until its ticket says otherwise. Raises: StoreUnavailable when over."""
        ticket = AppendTicket(self, batch, self._tick)
        with self._lock:
            if self._over:
                raise self._ended()
            self._queue.append(ticket)
            self._newest = ticket
            if self._asleep:
                self._wake()
        return ticket

    def settle(self, ticket: AppendTicket) -> None:
        """Return when the ticket is settled: as the leader, or after one has settled it."""
        while not ticket.settled:
            gate = self._gate_of(ticket)
            if gate is None:
                self._lead_until(ticket)
            else:
                self._wait_at(gate, ticket)

    def ask(self, ticket: AppendTicket, callback: Callback) -> bool:
        """Leave a callback with an unsettled ticket and call for a commit; False when it is settled already."""
        with self._lock:
            if ticket.settled:
                return False
            if self._over == _FORKED:
                raise self._ended()
            ticket.callbacks = (*ticket.callbacks, callback)
            self._asked = True
            if not self._lead.locked():  # a leader calls the thread itself when it leaves
                self._wake()
            return True

    def flush(self) -> None:
        """Return when everything appended so far is settled, well or badly."""
        newest = self._newest
        if newest is not None:
            self.settle(newest)

    def close(self) -> None:
        """Commit what is queued and stop the thread. Idempotent. Crash: a prefix of each run's batches."""
        with self._lock:
            self._over = self._over or "the store is closed"
            self._due.notify()
        self.flush()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(JOIN_S)

    def forget_in_child(self) -> None:
        """Let a forked child know of nothing: locks may be held by threads it does not have."""
        self._queue.clear()
        self._gates.clear()
        self._newest = None
        self._over = _FORKED
        self._reset()

    # ── leading ──

    def _gate_of(self, ticket: AppendTicket) -> threading.Lock | None:
        """Return a gate that opens when there is news of the ticket; None when nobody leads."""
        with self._lock:
            if self._over == _FORKED:
                raise self._ended()
            if not self._lead.locked():
                return None
            gate = threading.Lock()
            if not ticket.settled:
                gate.acquire()
                ticket.gates = (*ticket.gates, gate)
            return gate

    def _wait_at(self, gate: threading.Lock, ticket: AppendTicket) -> None:
        """Wait until a gate is opened, then open the next one.

        The threads of a commit, woken all at once, would stand in line for the interpreter, and whoever lets go of
        it for a moment would have to line up behind all the others.
        """
        try:
            while not gate.acquire(timeout=GATE_S):
                if ticket.settled or not self._lead.locked():
                    return
        finally:
            self._open_next_gate()

    def _open_next_gate(self) -> None:
        with suppress(IndexError):  # none is left
            self._gates.popleft().release()

    def _lead_until(self, ticket: AppendTicket) -> None:
        """Commit until the ticket is settled, then hand over."""
        try:
            with self._lead:
                if self._out:
                    self._settle_out()
                while not ticket.settled:
                    self._commit_some()
        finally:
            self._hand_over()

    def _commit_some(self) -> None:
        self._take_out()
        errors: Sequence[BaseException | None] = ()
        try:
            errors = self._commit([ticket.batch for ticket in self._out])
        finally:
            self._settle_out(errors)

    def _take_out(self) -> None:
        with self._lock:
            queue, most = self._queue, COMMIT_BATCHES_MAX
            # In one assignment, in which no signal is heard: no ticket may be in neither.
            if len(queue) <= most:
                self._out, self._queue = queue, deque()
            else:
                self._out, self._queue = deque(islice(queue, most)), deque(islice(queue, most, None))
            self._asked = self._asked and bool(self._queue)

    def _settle_out(self, errors: Sequence[BaseException | None] = ()) -> None:
        """Settle what is out; without an answer (its leader was interrupted, say by Ctrl-C) each batch is cannot tell.

        Begun again by the next leader when it is interrupted itself.
        """
        with self._lock:
            errors = errors or [ticket.error if ticket.settled else self._interrupted() for ticket in self._out]
            for ticket, error in zip(self._out, errors, strict=True):
                ticket.error, ticket.settled = error, True
                if ticket.gates:
                    gates, ticket.gates = ticket.gates, ()
                    self._gates.extend(gates)
                if ticket.callbacks:
                    self._told.append(ticket)
            self._out = deque()
        if self._gates:
            self._open_next_gate()

    def _hand_over(self) -> None:
        """Wake one that goes on: a waiting caller, else the thread if a callback asks; it also calls back."""
        with self._lock:
            if self._told:
                self._wake()
            for ticket in self._queue:
                if ticket.gates:
                    gates, ticket.gates = ticket.gates, ()
                    self._gates.extendleft(gates)
                    self._open_next_gate()
                    return
            if self._queue and (self._asked or self._over):
                self._wake()

    # ── the thread ──

    def _wake(self) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._work, name="milepost-committer", daemon=True)
            thread.start()
            self._thread = thread  # a start that was interrupted counts as none
        self._due.notify()
        self._asleep = False

    def _work(self) -> None:
        try:
            while (due := self._wait_until_due()) is not None:
                for ticket in due:
                    self._lead_until(ticket)
                self._call_back()
        finally:
            with self._lock:  # the next wake starts another
                self._thread, self._asleep = None, True

    def _wait_until_due(self) -> Sequence[AppendTicket] | None:
        """Return the ticket to lead for; () when there is only somebody to call back; None when it is all over."""
        idle = 0
        with self._lock:
            while (left := bool(self._queue or self._out or self._told)) or not self._over:
                due = self._due_now()
                if due or self._told:
                    return due
                self._asleep = idle > IDLE_TICKS_MAX
                if self._due.wait(None if self._asleep else TICK_S):
                    idle = 0
                else:
                    self._tick += 1
                    idle = 0 if left else idle + 1
        return None

    def _due_now(self) -> Sequence[AppendTicket]:
        """Return the oldest ticket that nobody settles when it is due; also one whose leader was interrupted."""
        if self._lead.locked():
            return ()
        if self._out:
            return (self._out[0],)
        is_due = self._queue and (self._asked or self._over or self._tick - self._queue[0].tick >= 2)
        return (self._queue[0],) if is_due else ()

    def _call_back(self) -> None:
        with self._lock:
            told, self._told = self._told, []
        for ticket in told:
            callbacks, ticket.callbacks = ticket.callbacks, ()
            for callback in callbacks:
                _call(callback, ticket.error)

    # ── errors ──

    def _ended(self) -> StoreUnavailable:
        if self._over == _FORKED:
            return forked(self._location, "append")
        return StoreUnavailable(location=self._location, operation="append", reason=self._over)

    def _interrupted(self) -> StoreUnavailable:
        reason = "the commit was interrupted; whether it happened cannot be told"
        return StoreUnavailable(location=self._location, operation="append", reason=reason)


_FORKED = "this process was forked"


def _call(callback: Callback, error: BaseException | None) -> None:
    """Tell a callback; one that fails is its owner's fault and harms no other ticket."""
    try:
        callback(error)
    except Exception as raised:  # noqa: BLE001 — reported where uncaught errors of threads go
        threading.excepthook(
            threading.ExceptHookArgs((type(raised), raised, raised.__traceback__, threading.current_thread()))
        )
