"""An asynchronous plan on a seeded schedule: its world, its processes, its troubles. What `schedules` compares.

The store settles its commits when the schedule says so, threads are the schedule's too, and a process dies by what
was durable at that moment being all that is left (as in `property/schedule_worlds`, whose provider this uses).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import async_plans
from async_plans import plan
from clock import START, MovableClock
from schedule_worlds import NOWHERE, RUN_ID, Died, Provider
from seeded_loop import SeededLoop, SeededPool, Stalled, run_seeded

from milepost.errors import MilepostError, QuestionError
from milepost.records.canonical import canonical
from milepost.records.model import Outcome, OutcomeRecorded, StepVerified
from milepost.records.rows import AnswerRow
from milepost.records.times import format_time
from milepost.runtime import adrive, crash
from milepost.runtime.opening import check_inner_heads, read_snapshot
from milepost.stores.contract import Batch, Ticket
from milepost.stores.memory import MemoryStore, MemoryTicket

STARTS_MAX = 40


class LateTicket:
    """A promise that is kept when the schedule says so; everything appended before is durable then, too."""

    def __init__(self, store: LateStore, ticket: MemoryTicket) -> None:
        self._store, self._ticket = store, ticket

    def wait(self) -> None:
        self._ticket.wait()

    def add_done_callback(self, callback: Callable[[BaseException | None], None]) -> None:
        self._store.loop.later(lambda: self._ticket.add_done_callback(callback))


class LateStore(MemoryStore):
    """A store on a schedule."""

    loop: SeededLoop

    def append(self, batch: Batch) -> Ticket:
        ticket = super().append(batch)
        assert isinstance(ticket, MemoryTicket)
        return LateTicket(self, ticket)

    def crash(self) -> LateStore:
        left = super().crash()
        left.__class__ = LateStore
        assert isinstance(left, LateStore)
        return left


@dataclass(frozen=True)
class Trouble:
    """What goes wrong in one start: nothing, a death at the n-th point, a cancellation, an error in a body."""

    die_at: int | None = None
    cancel_after: int | None = None  # things that happened outside


@dataclass
class AsyncWorld:
    """What outlives the processes of one run."""

    shape: str
    character: str
    failing: int = 0  # how often the body of `fails` raises what nothing declared
    clock: MovableClock = field(default_factory=MovableClock)
    store: LateStore = field(default_factory=LateStore)
    failures: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    choices: int = 0

    def __post_init__(self) -> None:
        self.provider = Provider(self.character, self.clock)

    def start(self, seed: int | None, trouble: Trouble) -> bool:
        """Start or resume in a process on one schedule; True when the run is done. Raises: Stalled when it hangs."""
        process = AsyncProcess(self, SeededLoop(seed), trouble)
        try:
            process.run()
        except QuestionError as question:
            self.asked[question.code] += 1
        except (Died, Stalled, BaseExceptionGroup, MilepostError, asyncio.CancelledError) as ended:
            if isinstance(ended, Stalled) and process.left is None:
                raise
        else:
            return process.left is None
        finally:
            self.choices += process.loop.choices
            if process.left is not None:
                self.store = process.left
        self.answer()
        return False

    def finish(self, seed: int | None) -> None:
        """Resume without trouble until the run is done. Raises: Stalled."""
        for number in range(STARTS_MAX):
            if self.start(None if seed is None else seed + number, Trouble()):
                return
        raise Stalled(f"not done after {STARTS_MAX} starts: {self.asked}")

    def answer(self) -> None:
        """Answer as a person would who looks at the provider."""
        for question in self.store.questions(RUN_ID):
            choice, result = "again", None
            if question.kind == "outcome_unknown":
                key = next((k for k in self.provider.applied if k in question.sentence), None)
                choice = "applied" if key else "not-applied"
                result = canonical({"done": self.provider.names[key]}) if key else None
            self.store.answer(AnswerRow(question.question_id, RUN_ID, choice, "ada", format_time(START), result=result))

    def standing(self) -> dict[str, str]:
        """Return the digest of what each call came to, and of the result. Raises what a journal is refused for."""
        opened = read_snapshot(self.store, RUN_ID, None, every_chain=True)
        if opened.refusal is not None:
            raise opened.refusal
        check_inner_heads(opened)
        found: dict[str, str] = {}
        for _, record in opened.records:
            if isinstance(record, StepVerified):
                assert record.path not in found, f"{record.path} is verified twice"
                found[record.path] = record.output.digest
            elif isinstance(record, OutcomeRecorded) and record.outcome == Outcome.APPLIED and record.result:
                found[record.path] = record.result.digest
        ended = opened.snapshot.ended
        assert ended is not None
        assert ended.output is not None
        there = self.store.artifacts(RUN_ID, [*found.values(), ended.output.digest])
        assert set(found.values()) <= set(there), "a checkpoint points at nothing"
        return {**found, "": ended.output.digest}


class AsyncProcess:
    """One process: runs the plan on one loop until it is done, asks, fails, is cancelled or dies."""

    def __init__(self, world: AsyncWorld, loop: SeededLoop, trouble: Trouble) -> None:
        self._world, self.provider, self.loop, self._trouble = world, world.provider, loop, trouble
        self._store = world.store
        self._store.loop = loop
        self._passed = 0
        self.left: LateStore | None = None

    def run(self) -> Any:
        pool, adrive._pool = adrive._pool, SeededPool(self.loop)  # type: ignore[assignment]
        crash.armed, async_plans.running = self._reached, self
        try:
            return run_seeded(self.loop, self._main)
        finally:
            crash.armed, adrive._pool = None, pool

    async def _main(self) -> Any:
        options = {"store": self._store, "clock": self._world.clock, "environ": NOWHERE, "handle_signals": False}
        declared = plan(self._world.shape, self._world.character)
        going = asyncio.ensure_future(declared.options(**options).run(RUN_ID, 1))
        if self._trouble.cancel_after is not None:
            self._cancel_later(going, self._trouble.cancel_after)
        return await going

    def _cancel_later(self, going: asyncio.Future[Any], count: int) -> None:
        if count > 0:
            self.loop.later(lambda: self._cancel_later(going, count - 1))
        else:
            going.cancel()

    def _reached(self, label: str, phase: str) -> None:
        self._passed += 1
        if self.left is None and self._passed == self._trouble.die_at:
            self.left = self._store.crash()
        self.alive()

    # ── what the plans call ──

    def alive(self) -> None:
        if self.left is not None:
            raise Died

    async def outside(self) -> None:
        self.alive()
        await self.loop.outside()
        self.alive()

    def flakes_now(self, name: str) -> bool:
        """Fail the first time."""
        self._world.failures[name] += 1
        return self._world.failures[name] == 1

    def fails_now(self, name: str) -> bool:
        """Fail as often as the world says."""
        self._world.failures[name] += 1
        return self._world.failures[name] <= self._world.failing
