"""A call that failed in the background: a run is not done while nobody was told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest
from branches import BrokenError, resume, start, verified
from desk import Desk

from milepost import Key, NotApplied, Retry, StepFailed, carry, effect, step, task
from milepost.errors import DuplicateStep, OutsideRun

pytestmark = [
    pytest.mark.timeout(60),
    # a thread that ends with an error says so itself
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]
KEPT: list[object] = []
IS_MENDED = threading.Event()


@pytest.fixture(autouse=True)
def _nothing_kept() -> None:
    KEPT.clear()
    IS_MENDED.clear()


@step
async def flaky(x: int) -> int:
    await asyncio.sleep(0)
    if not IS_MENDED.is_set():
        raise BrokenError("flaky")
    return x


@step(retry=Retry(on=BrokenError, attempts=1, then="raise"))
async def flaky_for_good(x: int) -> int:
    raise BrokenError


@effect(key=lambda x: x)
async def order(key: Key, x: int) -> int:
    raise NotApplied("sold out")


@step(name="flaky")
def flaky_plain(x: int) -> int:
    if not IS_MENDED.is_set():
        raise BrokenError("flaky")
    return x


async def _task(call: Callable[[], Coroutine[Any, Any, object]]) -> None:
    KEPT.append(asyncio.create_task(call()))


async def _dropped(call: Callable[[], Coroutine[Any, Any, object]]) -> None:
    asyncio.get_running_loop().create_task(call())  # that is the slip


async def _wrapped(call: Callable[[], Coroutine[Any, Any, object]]) -> None:
    async def wrapper() -> object:
        return await asyncio.create_task(call())

    KEPT.append(asyncio.create_task(wrapper()))


async def _renamed(call: Callable[[], Coroutine[Any, Any, object]]) -> None:
    async def wrapper() -> object:
        try:
            return await call()
        except StepFailed as error:
            raise KeyError("mine") from error

    KEPT.append(asyncio.create_task(wrapper()))


async def _gathered(call: Callable[[], Coroutine[Any, Any, object]]) -> None:
    KEPT.append(asyncio.gather(asyncio.create_task(call())))


async def _shielded(call: Callable[[], Coroutine[Any, Any, object]]) -> None:
    KEPT.append(asyncio.shield(call()))


async def _grouped(call: Callable[[], Coroutine[Any, Any, object]]) -> None:
    async def group() -> None:
        async with asyncio.TaskGroup() as inside:
            inside.create_task(call())

    KEPT.append(asyncio.create_task(group()))


async def _waited(call: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """It ended before the body did, and nobody looked how."""
    await asyncio.wait([asyncio.create_task(call())])


SHAPES = [_task, _dropped, _wrapped, _renamed, _gathered, _shielded, _grouped, _waited]
CALLS = {
    "step": lambda: flaky(1),
    "raises for good": lambda: flaky_for_good(1),
    "effect": lambda: order(1),
    "synchronous": lambda: flaky_plain.aio(1),
    "map": lambda: flaky.map([1, 2], concurrency=2),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
@pytest.mark.parametrize("shape", SHAPES)
def test_a_failure_that_nobody_took_is_the_bodys_own(desk: Desk, shape: Any, call: Any) -> None:
    """The run was `done`, its step `failed`, and a resume said `done already`."""

    @task
    async def plan() -> str:
        await shape(call)
        for _ in range(3):  # the calls begin
            await asyncio.sleep(0)
        return "all booked"

    for _ in range(2):
        with pytest.raises(StepFailed):
            start(desk, plan)
        assert desk.status() == "failed"


def test_once_mended_the_step_starts_again(desk: Desk) -> None:
    @task
    async def plan() -> str:
        await _task(lambda: flaky(1))
        return "all booked"

    with pytest.raises(StepFailed, match="flaky failed") as failed:
        start(desk, plan)
    assert isinstance(failed.value.__cause__, BrokenError)
    IS_MENDED.set()
    assert resume(desk, plan) == "all booked"
    assert len(desk.records("step_started")) == 2


def test_a_call_refused_in_the_background_is_no_less(desk: Desk) -> None:
    """The second item was never sent, and the run was done."""

    async def again() -> None:
        await order(1)

    @task
    async def plan() -> str:
        with suppress(StepFailed):
            await order(1)
        await asyncio.wait([asyncio.create_task(again())])
        return "all booked"

    with pytest.raises(DuplicateStep):
        start(desk, plan)
    assert desk.status() == "failed"


def test_a_step_is_not_verified_over_it(desk: Desk) -> None:
    @step
    async def outer() -> int:
        await _task(lambda: flaky(1))
        return 1

    @task
    async def plan() -> int:
        return await outer()

    with pytest.raises(StepFailed):
        start(desk, plan)
    assert list(verified(desk)) == []
    IS_MENDED.set()
    assert resume(desk, plan) == 1


def test_a_body_inside_does_not_take_the_failure_of_the_one_around_it(desk: Desk) -> None:
    """It is awaited later, by the body whose call it was."""

    @step
    async def outer() -> int:
        with suppress(StepFailed):
            await asyncio.create_task(flaky(2))
        return 1

    @task
    async def plan() -> int:
        background = asyncio.create_task(flaky(1))
        done = await outer()
        await asyncio.wait([background])
        return done + isinstance(background.exception(), StepFailed)

    assert start(desk, plan) == 2


async def _caught_in_task() -> None:
    async def careful() -> None:
        with suppress(StepFailed):
            await asyncio.create_task(flaky(1))

    KEPT.append(asyncio.create_task(careful()))


async def _falls_back_in_task() -> None:
    async def careful() -> None:
        try:
            await asyncio.create_task(flaky(1))
        except StepFailed:
            KEPT.append(await flaky_for_good.plain(1) if IS_MENDED.is_set() else "fell back")

    KEPT.append(asyncio.create_task(careful()))


async def _awaited() -> None:
    with suppress(StepFailed):
        await asyncio.create_task(flaky(1))


async def _returned() -> None:
    assert isinstance((await asyncio.gather(flaky(1), return_exceptions=True))[0], StepFailed)


async def _gathered_first() -> None:
    """`gather` raises the first; the second is lost to the plan as gather has it."""
    with suppress(StepFailed):
        await asyncio.gather(flaky(1), flaky_for_good(2))


async def _in_a_group() -> None:
    with suppress(BaseExceptionGroup):
        async with asyncio.TaskGroup() as group:
            group.create_task(flaky(1))
            group.create_task(flaky_for_good(2))


async def _asked() -> None:
    asked = asyncio.create_task(flaky(1))
    await asyncio.wait([asked])
    assert asked.exception() is not None


async def _mapped() -> None:
    with suppress(StepFailed):
        await flaky.map([1, 2], concurrency=2)


async def _in_a_thread() -> None:
    with suppress(StepFailed):
        await asyncio.to_thread(flaky_plain, 1)


HEARD = [
    _caught_in_task,
    _falls_back_in_task,
    _awaited,
    _returned,
    _gathered_first,
    _in_a_group,
    _asked,
    _mapped,
    _in_a_thread,
]


@pytest.mark.parametrize("shape", HEARD)
def test_a_failure_that_somebody_took_ends_nothing(desk: Desk, shape: Callable[[], Coroutine[Any, Any, None]]) -> None:
    @task
    async def plan() -> str:
        await shape()
        return "went on"

    assert start(desk, plan) == "went on"


def test_a_thread_that_catches_ends_nothing(desk: Desk) -> None:
    def careful() -> None:
        with suppress(StepFailed):
            flaky_plain(1)

    @task
    def plan() -> str:
        thread = threading.Thread(target=carry(careful))
        thread.start()
        thread.join()
        return "went on"

    assert start(desk, plan) == "went on"


class _Worker(threading.Thread):
    """A thread with a `run` of its own; `keeps` is what it makes of an error."""

    def __init__(self, function: Callable[[int], int], *, keeps: bool) -> None:
        super().__init__()
        self.function, self.keeps = function, keeps
        self.error: StepFailed | None = None

    def run(self) -> None:
        try:
            self.function(1)
        except StepFailed as error:
            if not self.keeps:
                raise
            self.error = error


def _itself(function: Callable[[int], int]) -> threading.Thread:
    return threading.Thread(target=function, args=(1,))


def _in_threads_target(function: Callable[[int], int]) -> threading.Thread:
    return threading.Thread(target=lambda: function(1))


def _in_a_timer(function: Callable[[int], int]) -> threading.Thread:
    return threading.Timer(0, function, [1])


def _in_a_worker(function: Callable[[int], int]) -> threading.Thread:
    return _Worker(function, keeps=False)


@pytest.mark.parametrize("shape", [_itself, _in_threads_target, _in_a_timer, _in_a_worker])
def test_a_failure_that_ends_a_thread_is_the_bodys_own(desk: Desk, shape: Callable[..., threading.Thread]) -> None:
    """Nobody receives what a thread of its own raises, whatever thread that is."""

    @task
    def plan() -> str:
        thread = shape(carry(flaky_plain))
        thread.start()
        thread.join()
        return "all booked"

    with pytest.raises(StepFailed, match="flaky"):
        start(desk, plan)
    IS_MENDED.set()
    assert resume(desk, plan) == "all booked"


def test_a_thread_that_keeps_the_failure_ends_nothing(desk: Desk) -> None:
    @task
    def plan() -> str:
        worker = _Worker(carry(flaky_plain), keeps=True)
        worker.start()
        worker.join()
        return "went on" if worker.error is not None else "lost it"

    assert start(desk, plan) == "went on"


@pytest.mark.parametrize("catches", [True, False])
def test_a_shield_that_is_awaited_tells(desk: Desk, catches: bool) -> None:
    """It was a RecursionError: a shield knows what it shields, and the other way round."""

    @task
    async def plan() -> str:
        try:
            await asyncio.shield(flaky(1))
        except StepFailed:
            if not catches:
                raise
        return "went on"

    if catches:
        assert start(desk, plan) == "went on"
    else:
        with pytest.raises(StepFailed, match="flaky"):
            start(desk, plan)


async def _orders() -> None:
    await order(1)


def test_a_task_that_had_not_begun_when_the_plan_returned_is_of_the_run(desk: Desk) -> None:
    """What it called was refused, and the run was done."""

    @task
    async def plan() -> str:
        await _task(_orders)
        return "all booked"

    with pytest.raises(StepFailed, match="order"):
        start(desk, plan)
    assert desk.status() == "failed"


def test_a_call_refused_because_its_step_had_ended_fails_the_plan(desk: Desk) -> None:
    @step
    async def outer() -> int:
        await _task(_orders)
        return 1

    @task
    async def plan() -> int:
        return await outer()

    with pytest.raises(OutsideRun, match="the body that called it has ended"):
        start(desk, plan)
    assert desk.status() == "failed"
    assert desk.records("intent_recorded") == []


def test_a_plan_that_fails_begins_nothing_more(desk: Desk) -> None:
    @task
    async def plan() -> str:
        await _task(_orders)
        raise BrokenError

    with pytest.raises(StepFailed, match="the plan"):
        start(desk, plan)
    assert desk.records("intent_recorded") == []


def test_a_map_in_a_thread_tells_the_thread(desk: Desk) -> None:
    """Its items fail in threads of a pool."""

    @task
    def plan() -> str:
        thread = threading.Thread(target=carry(lambda: flaky_plain.map([1, 2], concurrency=2)))
        thread.start()
        thread.join()
        return "all booked"

    with pytest.raises(StepFailed, match="flaky"):
        start(desk, plan)
