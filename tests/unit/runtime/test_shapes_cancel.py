"""Who cancels decides: a TaskGroup that gives up tears nothing, any other cancellation reaches the body."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from branches import WAIT_S, resume, start, verified
from desk import Desk
from meeting import BY, Meeting, OtherError, by_cancel

from milepost import Key, Retry, StepFailed, effect, step, task
from milepost.errors import AttemptsUsed, OutcomeUnknown
from milepost.runtime import crash

pytestmark = pytest.mark.timeout(60)


# ── a TaskGroup gives up ────────────────────────────────────────────────────────────────────────────

Use = Callable[[asyncio.TaskGroup, Callable[[], Awaitable[object]]], Awaitable[object]]


async def as_a_child(group: asyncio.TaskGroup, call: Callable[[], Awaitable[object]]) -> None:
    group.create_task(call())  # type: ignore[arg-type]


async def in_the_block(group: asyncio.TaskGroup, call: Callable[[], Awaitable[object]]) -> None:
    await call()


async def gathered_in_a_child(group: asyncio.TaskGroup, call: Callable[[], Awaitable[object]]) -> None:
    async def child() -> None:
        await asyncio.gather(call())

    group.create_task(child())


async def in_a_group_of_the_group(group: asyncio.TaskGroup, call: Callable[[], Awaitable[object]]) -> None:
    async def child() -> None:
        async with asyncio.TaskGroup() as inner:
            inner.create_task(call())  # type: ignore[arg-type]

    group.create_task(child())


@pytest.mark.parametrize("use", [as_a_child, in_the_block, gathered_in_a_child, in_a_group_of_the_group])
@pytest.mark.parametrize("kind", ["async", "thread", "map"])
def test_a_group_that_gives_up_does_not_tear_a_step(desk: Desk, use: Use, kind: str) -> None:
    """The step under way is finished and its checkpoint kept, although its sibling failed."""
    meeting = Meeting()

    @step
    async def slow(x: int) -> int:
        meeting.began.set()
        await meeting.may_go_on()
        return x

    @step(name="slow")
    def slow_in_a_thread(x: int) -> int:
        meeting.began.set()
        assert meeting.go_on.wait(WAIT_S)
        return x

    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "async": lambda: slow(1),
        "thread": lambda: slow_in_a_thread.aio(1),
        "map": lambda: slow.map([1, 2], concurrency=2),
    }

    async def sibling() -> None:
        await meeting.has_begun()
        asyncio.get_running_loop().call_soon(lambda: asyncio.get_running_loop().call_soon(meeting.go_on.set))
        raise OtherError

    @task
    async def plan() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(sibling())
            await use(group, calls[kind])

    with pytest.raises(StepFailed) as failed:
        start(desk, plan)
    assert isinstance(failed.value.__cause__, OtherError)
    assert len(list(verified(desk))) == (2 if kind == "map" else 1)
    assert desk.records("step_failed") == []


def test_a_failing_step_ends_its_group_with_the_ordinary_error(desk: Desk) -> None:
    """At the door the group is gone: `StepFailed`, with the user's own exception as its cause."""

    @step
    async def fails(x: int) -> int:
        raise OtherError("no")

    @step
    async def works(x: int) -> int:
        return x

    @task
    async def plan() -> None:
        async with asyncio.TaskGroup() as outer:
            outer.create_task(works(1))
            async with asyncio.TaskGroup() as inner:
                inner.create_task(fails(1))

    with pytest.raises(StepFailed, match="fails failed at attempt 1") as failed:
        start(desk, plan)
    assert isinstance(failed.value.__cause__, OtherError)
    assert list(verified(desk)) == ["works"]


# ── any other cancellation ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("by", BY)
def test_a_cancelled_step_is_torn_and_its_start_counts(desk: Desk, by: Any) -> None:
    """A body that is cancelled has failed; the plan goes on, the next resume starts it again."""
    meeting = Meeting()

    @step
    async def hangs(x: int) -> int:
        meeting.ran.append("hangs")
        if len(meeting.ran) == 1:
            meeting.began.set()
            await asyncio.Event().wait()
        return x

    @step
    async def after(said: str) -> str:
        if said == "given up":
            raise OtherError
        return said

    @task
    async def plan() -> str:
        return await after(await by(hangs(1), meeting))

    with pytest.raises(StepFailed, match="after"):
        start(desk, plan)
    state = desk.snapshot().steps["hangs"]
    assert (state.starts, str(state.status)) == (1, "failed")
    (noted,) = [r for r in desk.records("step_failed") if r.path == "hangs"]
    assert noted.error.type.endswith("CancelledError")
    assert not noted.final


@pytest.mark.parametrize("by", BY)
def test_a_cancelled_effect_is_unknown(desk: Desk, by: Any) -> None:
    """Nobody knows what a torn send did: the run does not end before the provider, or a person, has said so."""
    meeting = Meeting()

    @effect(provider="shop")
    async def order(key: Key, x: int) -> int:
        meeting.began.set()
        await asyncio.Event().wait()
        return x

    @task
    async def plan() -> str:
        return await by(order(1), meeting)

    with pytest.raises(OutcomeUnknown, match="order"):
        start(desk, plan)
    (outcome,) = desk.records("outcome_recorded")
    assert outcome.outcome == "unknown"


def test_a_send_cancelled_before_it_began_is_known_not_to_have_happened(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While its intent becomes durable nothing is sent: that is proof, not doubt."""
    sent: list[int] = []

    @effect(provider="shop")
    async def order(key: Key, x: int) -> int:
        sent.append(x)
        return x

    def cancelled_at_the_intent(label: str, phase: str) -> None:
        if (label, phase) == ("append:intent_recorded", "done"):
            calls[0].cancel()

    calls: list[asyncio.Future[int]] = []

    @task
    async def plan() -> str:
        calls.append(asyncio.ensure_future(order(1)))
        try:
            await calls[0]
        except asyncio.CancelledError:
            return "given up"
        return "finished"

    monkeypatch.setattr(crash, "armed", cancelled_at_the_intent)
    assert start(desk, plan) == "given up"
    assert sent == []
    (outcome,) = desk.records("outcome_recorded")
    assert outcome.outcome == "rejected"


def test_cancelling_a_run_cancels_its_bodies(desk: Desk) -> None:
    """`run()` in a task of the user's program: a cancellation ends the run failed, and a resume goes on."""
    meeting = Meeting()

    @step
    async def hangs(x: int) -> int:
        if not meeting.began.is_set():
            meeting.began.set()
            await asyncio.Event().wait()
        return x

    @task
    async def plan() -> int:
        return sum(await asyncio.gather(hangs(1), hangs(2)))

    async def program() -> None:
        running = asyncio.ensure_future(desk.run(plan))
        await meeting.has_begun()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(program())
    assert desk.status() == "failed"
    assert resume(desk, plan) == 3


def test_a_cancelled_wait_ends_at_once_and_stays_recorded(desk: Desk) -> None:
    """Waiting to try again is nothing under way: it is cancelled without a trace, and its time stands."""
    meeting = Meeting()

    class StandingClock(type(desk.clock)):  # type: ignore[misc]
        def about_to_wait(self, until: Any) -> None:
            meeting.began.set()

    @step(retry=Retry(on=OtherError, attempts=2, first_wait=timedelta(hours=1), longest_wait=timedelta(hours=1)))
    async def fails(x: int) -> int:
        meeting.ran.append("fails")
        raise OtherError

    @task
    async def plan() -> str:
        return await by_cancel(fails(1), meeting)

    assert start(desk, plan, clock=StandingClock()) == "given up"
    assert meeting.ran == ["fails"]
    assert desk.snapshot().steps["fails"].until is not None


def test_a_question_goes_before_a_cancellation(desk: Desk) -> None:
    """A branch that asks and is cancelled while parked has asked all the same: nothing around it is verified."""
    meeting = Meeting()

    @step(retry=Retry(on=OtherError, attempts=1))
    async def asks(x: int) -> int:
        raise OtherError

    @step
    async def slow(x: int) -> int:
        meeting.began.set()
        await meeting.may_go_on()
        return x

    @step
    async def outer(x: int) -> int:
        asking = asyncio.ensure_future(asks(x))
        slowly = asyncio.ensure_future(slow(x))
        await meeting.has_begun()
        asking.cancel()
        meeting.go_on.set()
        await asyncio.wait([asking, slowly])
        return x

    @task
    async def plan() -> int:
        return await outer(1)

    with pytest.raises(AttemptsUsed):
        start(desk, plan)
    assert list(verified(desk)) == ["outer/slow"]
