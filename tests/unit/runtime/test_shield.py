"""Work behind the shield is waited for to its end, and tells it however it came."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from milepost.errors import RunPaused, Signal
from milepost.runtime.shield import outlive

pytestmark = pytest.mark.timeout(30)


def heard_by(heard: list[bool], *, pass_on: bool) -> Any:
    """Return what hears of cancellations, and passes them on or not."""

    def hear(task: asyncio.Task[Any], passed_on: bool) -> None:
        heard.append(passed_on)
        if pass_on:
            task.cancel()

    return hear


def test_work_whose_task_is_cancelled_before_it_began_tells_so() -> None:
    """Whoever cancels every task of a loop must not leave one behind that waits for ever."""
    began: list[int] = []

    async def work() -> None:
        began.append(1)

    async def whole() -> None:
        loop = asyncio.get_running_loop()
        before = asyncio.all_tasks()
        caller = loop.create_task(outlive(work(), heard_by([], pass_on=False), None))
        loop.call_soon(lambda: [task.cancel() for task in asyncio.all_tasks() - before - {caller}])
        with pytest.raises(asyncio.CancelledError):
            await caller

    asyncio.run(whole())
    assert not began


@pytest.mark.parametrize("pass_on", [False, True])
def test_the_caller_goes_on_only_when_the_work_has_ended(pass_on: bool) -> None:
    """Cancelled again and again, it hears of it at its end; what was passed on has reached the work."""
    ended: list[str] = []

    async def whole() -> None:
        may_end, heard = asyncio.Event(), list[bool]()

        async def work() -> None:
            try:
                await may_end.wait()
            except asyncio.CancelledError:
                await may_end.wait()
                ended.append("cancelled")
                raise
            ended.append("by itself")

        caller = asyncio.create_task(outlive(work(), heard_by(heard, pass_on=pass_on), None))
        await asyncio.sleep(0)
        for _ in range(2 - pass_on):
            caller.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not caller.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert heard == [True] * (2 - pass_on)

    asyncio.run(whole())
    assert ended == ["cancelled" if pass_on else "by itself"]


@pytest.mark.parametrize("raised", [ValueError("no"), RunPaused("asked"), SystemExit(3)])
def test_what_ends_the_work_reaches_the_caller_only(raised: BaseException) -> None:
    """A SystemExit in a task ends the loop, an error that nobody fetches is logged: neither happens."""

    async def work() -> None:
        raise raised

    async def whole() -> None:
        with pytest.raises(type(raised)):
            await outlive(work(), heard_by([], pass_on=False), None)

    asyncio.run(whole())


def test_work_left_behind_by_a_closed_loop_ends_quietly(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody waits there any more; asyncio says what it says of every such task, and nothing is raised."""

    def leave() -> None:
        async def work() -> None:
            await asyncio.Event().wait()

        loop = asyncio.new_event_loop()
        left = loop.create_task(outlive(work(), heard_by([], pass_on=False), None))
        for _ in range(3):
            loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        assert not left.done()

    leave()
    gc.collect()  # what it raises in a coroutine that is thrown away is a warning, and those are errors here
    assert {record.name for record in caplog.records} <= {"asyncio"}


def test_a_signal_goes_before_the_cancellation_of_the_caller() -> None:
    """The run unwinds by it: a cancellation in its place could be swallowed."""

    async def whole() -> None:
        may_end = asyncio.Event()

        async def work() -> None:
            await may_end.wait()
            raise RunPaused("asked")

        caller = asyncio.create_task(outlive(work(), heard_by([], pass_on=False), None))
        await asyncio.sleep(0)
        caller.cancel()
        may_end.set()
        with pytest.raises(Signal):
            await caller

    asyncio.run(whole())
