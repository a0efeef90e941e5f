"""A run in this process: its journal, its lease, who is busy, and whether anything may still start.

Parking (design §5, Questions inside running code): a branch that asks, or wants to start while another asks,
is parked until no body runs any more; then a signal unwinds all of them, and every later start raises it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypedDict

from milepost.errors import BadOption, CorruptRecord, LeaseLost, RunPaused, RunStopping, Signal, StoreUnavailable
from milepost.protocol.amounts import is_number, shown
from milepost.protocol.keys import names_in
from milepost.protocol.ops import Artifact
from milepost.protocol.spec import EffectSpec, TaskSpec
from milepost.records.model import IntentRecorded, Record
from milepost.records.naming import body_of
from milepost.records.rows import ClaimRow
from milepost.runtime.bell import Bell
from milepost.runtime.clock import Clock
from milepost.runtime.expected import sent_by_body, stands_in
from milepost.runtime.journal import Entry, Journal
from milepost.runtime.pacing import Pacing
from milepost.stores.contract import LEASE_S, Lease, Store

if TYPE_CHECKING:
    import asyncio

    from milepost.protocol.role import Promoted

LEASE_S_MIN, LEASE_S_MAX = 0.001, 10**9
"""Seconds a lease may be declared to last."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What is not an input of the task: where it is kept, how it waits, who watches."""

    store: Store | None = None
    wait: bool = True  # False: leave with the run `waiting` instead of a countdown
    clock: Clock | None = None
    seal_key: bytes | None = None
    watch: Callable[[Record], None] | None = None
    waiting: Callable[[str, str], None] | None = None  # (until, reason), for a countdown
    environ: Mapping[str, str] = field(default_factory=dict)
    lease_s: float = LEASE_S
    handle_signals: bool = True
    shadow: bool = False  # no effect is sent; for a run that exists it must be what it is
    folder: str | None = None  # the run's own, where it is another now than it began in: moved, or copied

    def __post_init__(self) -> None:
        if not is_number(self.lease_s, LEASE_S_MIN, LEASE_S_MAX):
            reason = f"expected seconds from {LEASE_S_MIN} to {LEASE_S_MAX}, found {shown(self.lease_s)}"
            raise BadOption(where="option lease_s=", reason=reason)


class Options(TypedDict, total=False):
    """What `.options(…)` takes: any of the fields of RunOptions."""

    store: Store | None
    wait: bool
    clock: Clock | None
    seal_key: bytes | None
    watch: Callable[[Record], None] | None
    waiting: Callable[[str, str], None] | None
    environ: Mapping[str, str]
    lease_s: float
    handle_signals: bool
    shadow: bool
    folder: str | None


class ActiveRun:
    """The state that the branches of one run share in this process. `lock` guards `busy` and the scopes' counters."""

    def __init__(
        self, *, run_id: str, task: TaskSpec, journal: Journal, lease: Lease, clock: Clock, options: RunOptions
    ) -> None:
        self.run_id, self.task, self.journal, self.lease = run_id, task, journal, lease
        self.snapshot = journal.snapshot  # what the journal says up to the last append
        self.clock, self.options = clock, options
        self.seal_key, self.lease_s = options.seal_key, options.lease_s
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.bell = Bell()
        self.busy = 1  # calls under way that are neither parked nor waiting for calls of their own
        self.watched = False  # somebody asks, waits or is parked: changes must be rung
        self.asking = False
        self.waiting: tuple[str, str] | None = None  # until, reason: left with --no-wait
        self.unwinding: Signal | None = None
        self.stop_signal: int | None = None
        self.cancelling = False
        self.cancel_heard = False
        self.checking = False  # only looking: nothing is appended
        self.broken: BaseException | None = None  # LeaseLost or the store's error
        self.looked_up: dict[str, object] = {}
        self._going: set[asyncio.Task[None]] = set()
        self.unread: frozenset[str] = frozenset()  # steps verified when the run was opened: no chain in them was read
        self.sent_here: set[str] = set()  # effects that came to their end
        self.promoted: Promoted | None = None  # what a live run was promoted as, where its task asks for that
        self.pace: Pacing | None = None  # the places kept for sends under a rate
        self.asked_before = frozenset(self.snapshot.questions)  # open when the run was taken up, answered or not
        self._asked_once: set[str] = set()
        self._indexed = False  # applied effects of unread bodies are known by name and key

    @property
    def needs_promotion(self) -> bool:
        """Say whether this goes on as what was promoted: a live run whose task asks for that, or did when it began."""
        started = self.snapshot.started
        began_under = started.promotion if started is not None else None
        return not self.snapshot.is_shadow and (bool(self.task.shadow_first) or began_under is not None)

    @property
    def is_of_this_process(self) -> bool:
        """Say whether this is the process that holds the run, and not one forked from it."""
        return self.pid == os.getpid()

    # ── what a body may still expect ────────────────────────────────────────────────────────────────

    def stands_in(self, path: str) -> dict[str, bool]:
        """Return what was finished, declined or sent in a body before the plan began."""
        if self.unread and self.is_unread(path):
            self.journal.load_chain(path)
        return stands_in(self.snapshot, path, self._sent.get(path, {}))

    def is_unread(self, path: str) -> bool:
        """Say whether a body is that of a step that was verified when the run was opened, or inside of one."""
        while path and path not in self.unread:
            path = body_of(path)
        return bool(path)

    @cached_property
    def _sent(self) -> dict[str, dict[str, None]]:
        return sent_by_body(self.snapshot)

    def elsewhere(self, spec: EffectSpec, item_key: str | None, path: str) -> Sequence[IntentRecorded]:
        """Return the sends of the same effect and key= under other paths, for an effect without record.

        Each was applied, or a process that died left it in doubt. Another item of the same place in the plan is none.
        """
        s = self.snapshot
        if path in s.effects:
            return ()
        if self.unread and s.applied_count and not self._indexed:
            self._indexed = True
            self.journal.index_unread(self.is_unread)
        sent = s.sent_items.get((spec.name, item_key), {})
        if item_key is None:  # told apart by their paths alone: those of this process are as the plan wants them
            for other in self.sent_here.intersection(sent):
                sent.pop(other, None)  # another thread may be here, too
        place = names_in(path) if sent else ()
        others = [(s.effects.get(other), intent) for other, intent in [*sent.items()] if names_in(other) != place]
        # without a state it was applied inside a verified step
        return [intent for state, intent in others if state is None or state.arrived]

    # ── starting, parking, unwinding ────────────────────────────────────────────────────────────────

    def obstacle(self) -> BaseException | None:
        """Return what keeps every further start from happening, None when starts are free."""
        if self.broken is not None:
            return LeaseLost() if isinstance(self.broken, LeaseLost) else RunStopping(str(self.broken))
        if self.unwinding is not None:
            return type(self.unwinding)(*self.unwinding.args)
        if self.stop_signal is not None or self.cancelling:
            return RunStopping("an orderly stop was asked for")
        return None

    def changed(self) -> None:
        """Look whether the last body ended while somebody asks; wake whoever waits."""
        with self.lock:
            if self.unwinding is None and self.busy == 0 and (self.asking or self.waiting is not None):
                self.unwinding = RunPaused("the run asks" if self.asking else "the run waits")
        self.bell.ring()

    def park(self) -> None:
        """Count this branch as quiet: it waits for the others to end."""
        self.watched = True
        with self.lock:
            self.busy -= 1
        self.changed()

    def unpark(self) -> None:
        """Count this branch as busy again."""
        with self.lock:
            self.busy += 1

    def first_to_ask(self, what: str) -> bool:
        """Say whether this branch is the one that asks; "" is asked by each."""
        with self.lock:
            is_first = what not in self._asked_once
            if what:
                self._asked_once.add(what)
            return is_first

    def stop(self, signal_number: int) -> None:
        """Stop at the next boundary."""
        self.stop_signal = signal_number
        self.watched = True
        self.bell.ring()

    def cancel(self) -> None:
        """Stop at the next boundary and end the run. Heard once: entering the request is not stopped by it."""
        if self.cancel_heard:
            return
        self.cancelling = self.cancel_heard = True
        self.watched = True
        self.bell.ring()

    def lose(self, error: BaseException) -> None:
        """Stop everything: the lease is lost, or the store failed and must be read again."""
        if self.broken is None:
            self.broken = error
        self.watched = True
        self.bell.ring()

    def append(
        self, records: Sequence[Record], artifacts: Sequence[Artifact] = (), claims: Sequence[ClaimRow] = ()
    ) -> Entry:
        """Append to the journal; a signal when this process may not write any more. Crash: none of it, or all of it."""
        if self.broken is not None:
            raise self.obstacle() or AssertionError
        try:
            return self.journal.append(records, artifacts, claims)
        except (LeaseLost, StoreUnavailable) as error:
            raise self.broken_by(error) from error

    def broken_by(self, error: LeaseLost | StoreUnavailable | CorruptRecord) -> BaseException:
        """End the journey, whatever the plan catches, over what it cannot go on with; return the signal to raise."""
        self.lose(error)
        return self.obstacle() or AssertionError()

    def keep_going(self, task: asyncio.Task[None]) -> None:
        """Hold a task that nobody waits for until it is done: a loop alone would let go of it."""
        self._going.add(task)
        task.add_done_callback(self._going.discard)
