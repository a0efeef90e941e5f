"""Makes the appends of many runs durable in shared commits: who waits commits for all, else a thread does.

A caller that waits while nobody commits becomes the leader and commits everything queued, so one run alone
pays no thread hand-off. What nobody waits for is committed by a thread within FLUSH_S. Knows no SQL: it is
given a function that commits batches and says how each fared. Called by SqliteStore.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
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
"""Longest wait at a gate before the ticket is looked at: who was interrupted there opens no other one's."""
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
        """Ask for a commit soon and call back once, at once or from the thread that committed."""
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
        self._due = threading.Condition(self._lock)
        self._leading = False
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
            gate = self._lead_or_wait(ticket)
            if gate is None:
                self._lead(ticket)
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
            if not self._leading:  # a leader calls the thread itself when it leaves
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

    def _lead_or_wait(self, ticket: AppendTicket) -> threading.Lock | None:
        """Become the leader (None), or get a gate that opens when there is news of the ticket."""
        with self._lock:
            if self._over == _FORKED:
                raise self._ended()
            if not self._leading:
                self._leading = True
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
            while not gate.acquire(timeout=GATE_S) and not ticket.settled:
                continue
        finally:
            self._open_next_gate()

    def _open_next_gate(self) -> None:
        with suppress(IndexError):  # none is left
            self._gates.popleft().release()

    def _lead(self, ticket: AppendTicket | None) -> None:
        """Commit until the ticket is settled (None: once), hand over, then call back."""
        told: list[AppendTicket] = []
        try:
            self._commit_some(told)
            while ticket is not None and not ticket.settled:
                self._commit_some(told)
        finally:
            self._hand_over()
            for done in told:
                _call_back(done)

    def _commit_some(self, told: list[AppendTicket]) -> None:
        taken = self._take()
        if not taken:
            return
        errors: Sequence[BaseException | None] = ()
        try:
            errors = self._commit([ticket.batch for ticket in taken])
        finally:
            # Without an answer (the leader was interrupted, say by Ctrl-C) each batch is cannot tell.
            self._settle_all(taken, errors or [self._interrupted() for _ in taken])
            told += [ticket for ticket in taken if ticket.callbacks]

    def _take(self) -> list[AppendTicket]:
        queue = self._queue
        with self._lock:
            if len(queue) <= COMMIT_BATCHES_MAX:
                taken = list(queue)
                queue.clear()
            else:
                taken = [queue.popleft() for _ in range(COMMIT_BATCHES_MAX)]
            self._asked = self._asked and bool(queue)
        return taken

    def _settle_all(self, taken: Sequence[AppendTicket], errors: Sequence[BaseException | None]) -> None:
        with self._lock:
            for ticket, error in zip(taken, errors, strict=True):
                ticket.error = error
                ticket.settled = True
                if ticket.gates:
                    self._gates.extend(ticket.gates)
                    ticket.gates = ()
        if self._gates:
            self._open_next_gate()

    def _hand_over(self) -> None:
        """Stop leading and wake one that goes on: a waiting caller, else the thread if a callback asks."""
        with self._lock:
            self._leading = False
            for ticket in self._queue:
                if ticket.gates:
                    self._gates.extendleft(ticket.gates)
                    ticket.gates = ()
                    self._open_next_gate()
                    return
            if self._queue and (self._asked or self._over):
                self._wake()

    # ── the thread ──

    def _wake(self) -> None:
        self._asleep = False
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="milepost-committer", daemon=True)
            self._thread.start()
        self._due.notify()

    def _work(self) -> None:
        try:
            while self._wait_until_due():
                self._lead(None)
        finally:
            with self._lock:  # the next wake starts another
                self._thread, self._asleep = None, True

    def _wait_until_due(self) -> bool:
        """Return True as the leader when something is due, False when it is all over."""
        idle = 0
        with self._lock:
            while self._queue or not self._over:
                if self._is_due():
                    self._leading = True
                    return True
                self._asleep = idle > IDLE_TICKS_MAX
                if self._due.wait(None if self._asleep else TICK_S):
                    idle = 0
                else:
                    self._tick += 1
                    idle = 0 if self._queue else idle + 1
        return False

    def _is_due(self) -> bool:
        if self._leading or not self._queue:
            return False
        return self._asked or bool(self._over) or self._tick - self._queue[0].tick >= 2

    # ── errors ──

    def _ended(self) -> StoreUnavailable:
        if self._over == _FORKED:
            return forked(self._location, "append")
        return StoreUnavailable(location=self._location, operation="append", reason=self._over)

    def _interrupted(self) -> StoreUnavailable:
        reason = "the commit was interrupted; whether it happened cannot be told"
        return StoreUnavailable(location=self._location, operation="append", reason=reason)


_FORKED = "this process was forked"


def _call_back(ticket: AppendTicket) -> None:
    """Tell a ticket's callbacks; a callback that fails is its owner's fault and harms no other ticket."""
    for callback in ticket.callbacks:
        try:
            callback(ticket.error)
        except Exception as error:  # noqa: BLE001 — reported where uncaught errors of threads go
            threading.excepthook(
                threading.ExceptHookArgs((type(error), error, error.__traceback__, threading.current_thread()))
            )
    ticket.callbacks = ()
