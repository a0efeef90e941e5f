"""What a body may raise, and what a plan may catch: the same on each resume."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from branches import BrokenError, resume, start, this_run, verified
from desk import Desk

from milepost import Key, NotApplied, Retry, StepFailed, carry, effect, step, task
from milepost.errors import AttemptsUsed, RunInterrupted

pytestmark = pytest.mark.timeout(60)


class World:
    """What the steps of a test do; changed between its runs."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.is_mended = False


@pytest.fixture
def world() -> World:
    return World()


# ── caught failures ─────────────────────────────────────────────────────────────────────────────────


def plan_that_catches(world: World, then: Callable[[], object]) -> Any:
    @step
    def flaky(x: int) -> str:
        world.ran.append("flaky")
        if not world.is_mended:
            raise BrokenError
        return "worked"

    @step
    def fallback(x: int) -> str:
        world.ran.append("fallback")
        return "fallback"

    @task
    def plan() -> str:
        try:
            said = flaky(1)
        except StepFailed:
            said = fallback(1)
        then()
        return said

    return plan


def test_a_plan_that_catches_a_failure_gets_it_again_on_each_resume(desk: Desk, world: World) -> None:
    """It went on from there: a step that works by now must not change what was decided."""

    def stops() -> None:
        if not world.is_mended:
            raise BrokenError

    plan = plan_that_catches(world, stops)
    with pytest.raises(StepFailed, match="the plan"):
        start(desk, plan)
    world.is_mended = True
    assert resume(desk, plan) == "fallback"
    assert world.ran == ["flaky", "fallback"]


def test_a_failure_that_ends_the_run_is_not_final(desk: Desk, world: World) -> None:
    """Nobody caught it: mended, the step starts again."""

    @step
    def flaky(x: int) -> str:
        if not world.is_mended:
            raise BrokenError
        return "worked"

    @task
    def plan() -> str:
        return flaky(1)

    for _ in range(2):
        with pytest.raises(StepFailed, match="flaky failed") as failed:
            start(desk, plan)
        assert isinstance(failed.value.__cause__, BrokenError)
    world.is_mended = True
    assert resume(desk, plan) == "worked"


@pytest.mark.parametrize("shape", ["gather", "task", "group", "map", "thread_map", "executor"])
def test_a_failure_that_a_branch_brings_is_caught_for_good_too(desk: Desk, world: World, shape: str) -> None:
    """Whatever told the plan of it."""

    def flaky_body(x: int) -> int:
        world.ran.append("flaky")
        if not world.is_mended:
            raise BrokenError
        return x

    flaky = step(name="flaky")(flaky_body)

    async def in_shape() -> None:
        if shape == "gather":
            (error,) = await asyncio.gather(flaky.aio(1), return_exceptions=True)
            if error != 1:
                raise error  # type: ignore[misc]
        elif shape == "task":
            await asyncio.create_task(flaky.aio(1))
        elif shape == "group":
            async with asyncio.TaskGroup() as group:
                group.create_task(flaky.aio(1))

    @task(name="plan")
    async def plan_async() -> str:
        try:
            await in_shape()
        except (StepFailed, BaseExceptionGroup):
            return "caught"
        return "worked"

    @task(name="plan")
    def plan() -> str:
        try:
            if shape == "map":
                flaky.map([1])
            elif shape == "thread_map":
                flaky.map([1, 2], concurrency=2)
            else:
                with ThreadPoolExecutor(1) as pool:
                    pool.submit(carry(flaky), 1).result()
        except StepFailed:
            return "caught"
        return "worked"

    chosen = plan_async if shape in ("gather", "task", "group") else plan
    assert start(desk, chosen) == "caught"
    failed = desk.records("step_failed")
    assert {record.path for record in failed} == {record.path for record in failed if record.final}


def test_a_failure_nobody_was_told_of_yet_is_not_final(desk: Desk, world: World) -> None:
    """A task that failed in the background has told nobody while the plan goes on elsewhere."""

    @step
    async def flaky(x: int) -> int:
        if not world.is_mended:
            raise BrokenError
        return x

    @step
    async def other(x: int) -> int:
        return x

    @task
    async def plan() -> int:
        background = asyncio.create_task(flaky(1))
        await asyncio.wait([background])
        return await other(2) + await background

    with pytest.raises(StepFailed, match="flaky"):
        start(desk, plan)
    world.is_mended = True
    assert resume(desk, plan) == 3


def test_an_outer_step_is_retried_with_what_is_inside(desk: Desk, world: World) -> None:
    """The outer policy starts the body again; what was verified inside is not repeated."""

    @step
    def good(x: int) -> int:
        world.ran.append("good")
        return x

    @step
    def flaky(x: int) -> int:
        world.ran.append("flaky")
        if world.ran.count("flaky") < 3:
            raise BrokenError
        return x

    @step(retry=Retry(on=BrokenError, attempts=3, first_wait=timedelta(0), longest_wait=timedelta(0)))
    def outer(x: int) -> int:
        return good(x) + flaky(x)

    @task
    def plan() -> int:
        return outer(1)

    assert start(desk, plan) == 2
    assert world.ran == ["good", "flaky", "flaky", "flaky"]
    assert list(verified(desk)) == ["outer/good", "outer/flaky", "outer"]


def test_a_rejected_effect_that_a_plan_catches_is_not_sent_again(desk: Desk, world: World) -> None:
    @effect(retry=Retry(on=NotApplied, attempts=1, then="raise"))
    def order(key: Key, x: int) -> int:
        world.ran.append("order")
        raise NotApplied("sold out")

    @task
    def plan() -> str:
        with suppress(StepFailed):
            order(1)
        if not world.is_mended:
            raise BrokenError
        return "went on"

    with pytest.raises(StepFailed, match="the plan"):
        start(desk, plan)
    world.is_mended = True
    assert resume(desk, plan) == "went on"
    assert world.ran == ["order"]


# ── signals are sticky ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("caught", [Exception, BaseException])
def test_users_code_cannot_swallow_a_signal(desk: Desk, world: World, caught: type[BaseException]) -> None:
    """`except Exception` never sees it; whoever catches more and returns is not verified, and starts nothing."""

    @step
    def stops(x: int) -> int:
        if not world.is_mended:
            this_run().stop(15)
        return x

    @step
    def inner(x: int) -> int:
        world.ran.append("inner")
        return x

    @step
    def outer(x: int) -> int:
        stops(x)
        for _ in range(2):
            with suppress(caught):
                inner(x)
        return x

    @task
    def plan() -> int:
        with suppress(caught):
            outer(1)
        with suppress(caught):
            inner(2)
        return 7

    with pytest.raises(RunInterrupted):
        start(desk, plan)
    assert world.ran == []
    assert list(verified(desk)) == ["outer/stops"]
    assert desk.snapshot().steps["outer"].starts == 0
    world.is_mended = True
    assert resume(desk, plan) == 7


def test_a_run_is_not_finished_while_it_asks(desk: Desk, world: World) -> None:
    @step(retry=Retry(on=BrokenError, attempts=1))
    def asks(x: int) -> int:
        raise BrokenError

    @task
    def plan() -> str:
        try:
            asks(1)
        except BaseException:
            return "swallowed"
        return "never"

    with pytest.raises(AttemptsUsed):
        start(desk, plan)
    assert desk.status() == "asking"


# ── at the door ─────────────────────────────────────────────────────────────────────────────────────


def test_an_exception_between_steps_is_a_failed_run_with_its_cause(desk: Desk) -> None:
    error = BrokenError("between")

    @task
    def plan() -> int:
        raise error

    with pytest.raises(StepFailed, match="the plan failed at attempt 1") as failed:
        start(desk, plan)
    assert failed.value.__cause__ is error
    assert desk.status() == "failed"


def test_the_record_of_a_failed_run_says_what_its_step_raised(desk: Desk) -> None:
    """Not our class name around it: which step and which attempt stands beside it."""

    @step
    def fails(x: int) -> int:
        raise BrokenError(f"no: {x}")

    @task
    def plan() -> int:
        return fails(1)

    with pytest.raises(StepFailed):
        start(desk, plan)
    ended = desk.records("run_ended")[-1]
    assert (ended.path, str(ended.error)) == ("fails", "branches.BrokenError: no: 1")
    row = desk.store.run("r")
    assert row is not None
    assert row.progress.detail == "fails: branches.BrokenError: no: 1"


def test_a_group_of_failures_is_unwrapped_to_the_first_of_ours(desk: Desk) -> None:
    """One of our errors says more than a group; the user's exception stays its cause."""

    @step
    async def fails(x: int) -> int:
        raise BrokenError

    async def other() -> None:
        raise KeyError

    @task
    async def plan() -> None:
        async with asyncio.TaskGroup() as outer:
            outer.create_task(other())
            async with asyncio.TaskGroup() as inner:
                inner.create_task(fails(1))

    with pytest.raises(StepFailed) as failed:
        start(desk, plan)
    assert failed.value.path in ("fails", "the plan")
    assert not isinstance(failed.value.__cause__, BaseExceptionGroup)
