"""A call that was made and never awaited: the commonest slip of asynchronous code, and never silent."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from branches import resume, start, verified
from desk import Desk

from milepost import Key, StepFailed, effect, sleep, step, task
from milepost.errors import ApprovalNeeded, DuplicateStep, NotAwaited

pytestmark = pytest.mark.timeout(60)


@effect(key=lambda x: x)
async def send(key: Key, x: int) -> int:
    return x


@effect(key=lambda x: x)
def send_plain(key: Key, x: int) -> int:
    return x


@effect(key=lambda x: x, approve="before")
async def ask(key: Key, x: int) -> int:
    return x


@step
async def count(x: int) -> int:
    return x


@step(name="count")
def count_plain(x: int) -> int:
    return x


FORGOTTEN: list[tuple[str, Callable[[], object]]] = [
    ("send[1]", lambda: send(1)),
    ("send_plain[1]", lambda: send_plain.aio(1)),
    ("count", lambda: count(1)),
    ("count", lambda: count_plain.aio(1)),
    ("count.map of 2 from count", lambda: count.map([1, 2])),
    ("send.map of 2 from send[1]", lambda: send.map([1, 2])),
    ("nap", lambda: sleep.aio(1, name="nap")),
]
forgotten = pytest.mark.parametrize(
    ("path", "call"), FORGOTTEN, ids=[f"{n}-{path}" for n, (path, _) in enumerate(FORGOTTEN)]
)


@forgotten
def test_a_forgotten_call_of_a_plan_ends_the_run_by_its_name(desk: Desk, path: str, call: Callable[[], object]) -> None:
    """The run was `done` and the effect never sent; Python's own warning named a function of ours."""

    @task
    async def plan() -> int:
        call()
        return 1

    with pytest.raises(NotAwaited) as refused:
        start(desk, plan)
    assert refused.value.path == path
    assert (desk.status(), desk.records("intent_recorded", "step_started")) == ("failed", [])
    gc.collect()  # a coroutine that was left alone would warn here


@forgotten
def test_a_forgotten_call_of_a_step_keeps_it_from_being_verified(
    desk: Desk, path: str, call: Callable[[], object]
) -> None:
    @step
    async def outer() -> int:
        call()
        return 1

    @task
    async def plan() -> int:
        return await outer()

    with pytest.raises(StepFailed, match="outer failed") as failed:
        start(desk, plan)
    cause = failed.value.__cause__
    assert isinstance(cause, NotAwaited)
    assert path.partition(" ")[0] in cause.path
    assert list(verified(desk)) == []


def test_a_forgotten_call_is_made_when_the_code_is_mended(desk: Desk) -> None:
    mended = False

    @task
    async def plan() -> int:
        n = await count(2)
        sent = send(n)
        return await sent if mended else n

    with pytest.raises(NotAwaited):
        start(desk, plan)
    mended = True
    assert resume(desk, plan) == 2
    assert [record.outcome for record in desk.records("outcome_recorded")] == ["applied"]
    assert len(desk.records("step_started")) == 1


async def _wrapped(work: Awaitable[int]) -> int:
    return await work


async def _handed_on(work: Awaitable[int], kept: list[Any]) -> None:
    kept.append(asyncio.create_task(_wrapped(work)))


@pytest.mark.parametrize("made", ["task", "gathered", "wrapped", "handed on"])
def test_what_a_task_holds_is_waited_for(desk: Desk, made: str) -> None:
    """A task created on the last line begins after the body returned: that is no slip."""
    kept: list[Any] = []

    @task
    async def plan() -> int:
        work = send(1)
        if made == "task":
            kept.append(asyncio.create_task(work))
        elif made == "gathered":
            kept.append(asyncio.gather(work))
        elif made == "wrapped":
            kept.append(asyncio.create_task(_wrapped(work)))
        else:
            await _handed_on(work, kept)
        return 1

    assert start(desk, plan) == 1
    assert [record.outcome for record in desk.records("outcome_recorded")] == ["applied"]


def test_a_task_that_was_cancelled_before_it_began_is_no_slip(desk: Desk) -> None:
    """Somebody said that it is not wanted."""

    @task
    async def plan() -> int:
        unwanted = asyncio.create_task(send(1))
        unwanted.cancel()
        return await count(1)

    assert start(desk, plan) == 1
    assert desk.records("intent_recorded") == []


@pytest.mark.parametrize("later", [lambda: count(1), lambda: count.map([1, 2])])
def test_a_question_leaves_what_had_not_begun_without_a_word(desk: Desk, later: Callable[[], Any]) -> None:
    """Python warned of each call that was to be awaited after the question, as if the plan had forgotten it."""

    @task
    async def plan() -> int:
        work = later()
        sent = await ask(1)
        await work
        return sent

    with pytest.raises(ApprovalNeeded):
        start(desk, plan)
    gc.collect()


def test_an_error_of_ours_is_all_that_is_said(desk: Desk) -> None:
    @task
    async def plan() -> list[int]:
        return await asyncio.gather(send(1), send(1))

    with pytest.raises(DuplicateStep):
        start(desk, plan)
    gc.collect()


@pytest.mark.parametrize("call", [lambda: ask(1), lambda: ask.map([1, 2])])
def test_a_question_in_the_background_is_told_by_the_run_alone(
    desk: Desk, call: Callable[[], Any], caplog: pytest.LogCaptureFixture
) -> None:
    """asyncio printed our signal as an exception that was never retrieved."""
    kept: list[asyncio.Task[Any]] = []

    @task
    async def plan() -> int:
        kept.append(asyncio.create_task(call()))
        return await count(1)

    with pytest.raises(ApprovalNeeded):
        start(desk, plan)
    kept.clear()
    gc.collect()
    assert caplog.messages == []


def test_a_plan_that_raised_is_told_what_it_raised(desk: Desk) -> None:
    """Python's own warning about a call that an error left behind names the call, and no function of ours."""

    @task
    async def plan() -> int:
        work = send(1)
        if desk.folder:
            raise ValueError("first things first")
        return await work

    def started() -> None:
        with pytest.raises(StepFailed, match="first"):
            start(desk, plan)
        gc.collect()

    with pytest.warns(RuntimeWarning, match=r"'send\[1\]' was never awaited"):
        started()
