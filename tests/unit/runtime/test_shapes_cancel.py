"""Who cancels decides: a TaskGroup that gives up tears nothing, any other cancellation reaches the body."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from branches import WAIT_S, resume, start, verified
from desk import Desk

from milepost import Applied, CannotTell, Found, Key, NotFound, Retry, StepFailed, carry, effect, step, task
from milepost.errors import AttemptsUsed, OutcomeUnknown
from milepost.runtime import crash

pytestmark = pytest.mark.timeout(60)


class OtherError(Exception):
    """What a sibling raises."""


class Meeting:
    """Two branches that wait for each other, on whatever loop they run."""

    def __init__(self) -> None:
        self.began, self.go_on = threading.Event(), threading.Event()
        self.ran: list[str] = []

    async def has_begun(self) -> None:
        while not self.began.is_set():
            await asyncio.sleep(0)

    async def may_go_on(self) -> None:
        while not self.go_on.is_set():
            await asyncio.sleep(0)


# ── a TaskGroup gives up ────────────────────────────────────────────────────────────────────────────

Use = Callable[[asyncio.TaskGroup, Callable[[], Awaitable[int]]], Awaitable[object]]


async def as_a_child(group: asyncio.TaskGroup, call: Callable[[], Awaitable[int]]) -> None:
    group.create_task(call())  # type: ignore[arg-type]


async def in_the_block(group: asyncio.TaskGroup, call: Callable[[], Awaitable[int]]) -> None:
    await call()


async def gathered_in_a_child(group: asyncio.TaskGroup, call: Callable[[], Awaitable[int]]) -> None:
    async def child() -> None:
        await asyncio.gather(call())

    group.create_task(child())


async def in_a_group_of_the_group(group: asyncio.TaskGroup, call: Callable[[], Awaitable[int]]) -> None:
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

    async def mapped() -> int:
        return sum(await slow.map([1, 2], concurrency=2))

    calls: dict[str, Callable[[], Awaitable[int]]] = {
        "async": lambda: slow(1),
        "thread": lambda: slow_in_a_thread.aio(1),
        "map": mapped,
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


async def by_timeout(call: Awaitable[int], meeting: Meeting) -> str:
    async def expire(deadline: asyncio.Timeout) -> None:
        await meeting.has_begun()
        deadline.reschedule(0)

    try:
        async with asyncio.timeout(None) as deadline:
            expiring = asyncio.ensure_future(expire(deadline))
            await call
    except TimeoutError:
        await expiring
        return "given up"
    return "finished"


async def by_cancel(call: Awaitable[int], meeting: Meeting) -> str:
    task = asyncio.ensure_future(call)
    await meeting.has_begun()
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return "given up"
    return "finished"


async def by_cancelled_gather(call: Awaitable[int], meeting: Meeting) -> str:
    both = asyncio.gather(call)
    await meeting.has_begun()
    both.cancel()
    try:
        await both
    except asyncio.CancelledError:
        return "given up"
    return "finished"


BY = [by_timeout, by_cancel, by_cancelled_gather]


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


# ── threads that were given up ──────────────────────────────────────────────────────────────────────


def nothing_there(key: Key, x: int) -> Found[int] | NotFound | CannotTell:
    return NotFound()


@pytest.mark.parametrize("by", BY)
def test_a_send_given_up_lands_late_and_is_recorded_as_such(desk: Desk, by: Any) -> None:
    """A thread cannot be cancelled: the run waits for it, and what it brought is `applied`, never sent again."""
    meeting = Meeting()

    @effect(provider="shop", lookup=nothing_there, settle=timedelta(0))
    def order(key: Key, x: int) -> Applied[int]:
        meeting.ran.append("order")
        meeting.began.set()
        assert meeting.go_on.wait(WAIT_S)
        return Applied(x, ref="no. 7")

    @task
    async def plan() -> str:
        said: str = await by(order.aio(1), meeting)
        meeting.go_on.set()
        return said

    assert start(desk, plan) == "given up"
    unknown, applied = desk.records("outcome_recorded")
    assert (unknown.outcome, applied.outcome, applied.late, applied.ref) == ("unknown", "applied", True, "no. 7")
    assert meeting.ran == ["order"]


def test_a_send_given_up_that_fails_stays_unknown(desk: Desk) -> None:
    """What a late exception says is no proof: the provider is asked, or a person."""
    meeting = Meeting()

    @effect(provider="shop")
    def order(key: Key, x: int) -> int:
        meeting.began.set()
        assert meeting.go_on.wait(WAIT_S)
        raise OtherError

    @task
    async def plan() -> str:
        said = await by_cancel(order.aio(1), meeting)
        meeting.go_on.set()
        return said

    with pytest.raises(OutcomeUnknown):
        start(desk, plan)
    assert [record.outcome for record in desk.records("outcome_recorded")] == ["unknown"]


def test_a_step_given_up_calls_nothing_any_more(desk: Desk) -> None:
    """Its thread runs on, but what it would start now belongs to nobody."""
    meeting = Meeting()

    @step
    def inner(x: int) -> int:
        meeting.ran.append("inner")
        return x

    @step
    def outer(x: int) -> int:
        meeting.began.set()
        assert meeting.go_on.wait(WAIT_S)
        try:
            return inner(x)
        except BaseException as error:
            meeting.ran.append(type(error).__name__)
            raise

    @task
    async def plan() -> str:
        said = await by_cancel(outer.aio(1), meeting)
        meeting.go_on.set()
        return said

    assert start(desk, plan) == "given up"
    assert meeting.ran == ["RunStopping"]
    assert list(verified(desk)) == []


# ── a body waits for what it started ────────────────────────────────────────────────────────────────


def test_a_body_waits_for_tasks_it_did_not_await(desk: Desk) -> None:
    """The outer step is verified after the inner one, though its code did not wait."""
    tasks: list[asyncio.Task[int]] = []

    @step
    async def inner(x: int) -> int:
        for _ in range(20):
            await asyncio.sleep(0)
        return x

    @step
    async def outer(x: int) -> int:
        tasks.append(asyncio.create_task(inner(x)))
        return x

    @task
    async def plan() -> int:
        return await outer(1)

    assert start(desk, plan) == 1
    assert list(verified(desk)) == ["outer/inner", "outer"]


def test_a_body_waits_for_threads_it_did_not_join(desk: Desk) -> None:
    """As for tasks: what is under way when the body returns belongs to it."""
    meeting = Meeting()

    @step
    def inner(x: int) -> int:
        meeting.began.set()
        return x

    @step
    def outer(x: int) -> int:
        threading.Thread(target=carry(inner), args=(x,)).start()
        assert meeting.began.wait(WAIT_S)
        return x

    @task
    def plan() -> int:
        return outer(1)

    assert start(desk, plan) == 1
    first, second = verified(desk)
    assert first.startswith("outer/inner[~")
    assert second == "outer"


def test_a_call_after_its_body_ended_is_refused(desk: Desk) -> None:
    """A task that calls a step when its body is verified already: an error there, and no record."""
    late: list[BaseException] = []
    ended = threading.Event()

    @step
    async def inner(x: int) -> int:
        return x

    @step
    async def outer(x: int) -> int:
        async def lingering() -> None:
            while not ended.is_set():
                await asyncio.sleep(0)
            try:
                await inner(x)
            except Exception as error:
                late.append(error)

        tasks.append(asyncio.create_task(lingering()))
        return x

    tasks: list[asyncio.Task[None]] = []

    @task
    async def plan() -> int:
        found = await outer(1)
        ended.set()
        await tasks[0]
        return found

    assert start(desk, plan) == 1
    assert "the body that called it has ended" in str(late[0])
    assert list(verified(desk)) == ["outer"]


def test_an_async_verifier_can_be_cancelled_and_the_body_is_not_repeated(desk: Desk) -> None:
    """The output is kept before it is verified: who gives up on the verifier does not pay for the body again."""
    meeting = Meeting()

    async def slow_check(output: int) -> bool:
        if not meeting.began.is_set():
            meeting.began.set()
            await asyncio.Event().wait()
        return True

    @step(verify=slow_check)
    async def expensive(x: int) -> int:
        meeting.ran.append("expensive")
        return x

    @task
    async def plan() -> str:
        if meeting.began.is_set():
            return f"finished: {await expensive(1)}"
        await by_cancel(expensive(1), meeting)
        raise OtherError

    with pytest.raises(StepFailed, match="OtherError"):
        start(desk, plan)
    assert resume(desk, plan) == "finished: 1"
    assert meeting.ran == ["expensive"]
