"""Two branches and what follows them, in every shape a plan can give them: what must hold for one holds for all.

`left` makes the trouble, `right` is under way meanwhile and ends only when the trouble is there, `after` comes when
both are through. Nobody sleeps: each waits for what the other did.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Literal, TypeAlias

import pytest
from desk import Death, Desk

from milepost import Retry, carry, step, task
from milepost.runtime.active import ActiveRun
from milepost.runtime.scope import current

Trouble: TypeAlias = Literal["question", "signal", "none"]
WAIT_S = 20
"""Longest time a test waits for something that must happen."""


class BrokenError(Exception):
    """What `left` raises to make the run ask."""


def this_run() -> ActiveRun:
    scope = current.get()
    assert scope is not None
    return scope.run


class Branches:
    """The steps of one test: what ran, in which order, and the trouble that `left` makes until it is mended."""

    def __init__(self, trouble: Trouble) -> None:
        self.trouble: Trouble = trouble
        self.ran: list[str] = []
        self.right_runs = threading.Event()
        self._retry = Retry(on=BrokenError, attempts=1) if trouble == "question" else None
        self._declare()

    @property
    def counts(self) -> dict[str, int]:
        return dict(Counter(self.ran))

    def mend(self) -> None:
        self.trouble = "none"

    def _declare(self) -> None:
        @step(retry=self._retry)
        def left(x: int) -> int:
            self.ran.append("left")
            assert self.trouble == "none" or self.right_runs.wait(WAIT_S)
            return self._trouble(x)

        @step
        def right(x: int) -> int:
            self.ran.append("right")
            self.right_runs.set()
            if self.trouble != "none":
                run = this_run()
                assert run.bell.wait(lambda: self._is_there(run), WAIT_S)
            return x

        @step
        def after(x: int) -> int:
            self.ran.append("after")
            return x

        self.left, self.right, self.after = left, right, after
        self._declare_async()

    def _declare_async(self) -> None:
        @step(name="left", retry=self._retry)
        async def left_async(x: int) -> int:
            self.ran.append("left")
            while self.trouble != "none" and not self.right_runs.is_set():
                await asyncio.sleep(0)
            return self._trouble(x)

        @step(name="right")
        async def right_async(x: int) -> int:
            self.ran.append("right")
            self.right_runs.set()
            if self.trouble != "none":
                run = this_run()
                assert await run.bell.wait_async(lambda: self._is_there(run), WAIT_S)
            return x

        @step(name="after")
        async def after_async(x: int) -> int:
            self.ran.append("after")
            return x

        self.left_async, self.right_async, self.after_async = left_async, right_async, after_async

    def _trouble(self, x: int) -> int:
        if self.trouble == "question":
            raise BrokenError
        if self.trouble == "signal":
            this_run().stop(signal.SIGTERM)
        return x

    def _is_there(self, run: ActiveRun) -> bool:
        return run.asking or run.stop_signal is not None


# ── asynchronous shapes ─────────────────────────────────────────────────────────────────────────────

Shape: TypeAlias = Callable[[Branches], Coroutine[Any, Any, object]]


async def gather(b: Branches) -> None:
    await asyncio.gather(b.left_async(1), b.right_async(2))


async def return_exceptions(b: Branches) -> None:
    """The signal comes back as a value: the plan does not see it."""
    await asyncio.gather(b.left_async(1), b.right_async(2), return_exceptions=True)


async def task_group(b: Branches) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(b.left_async(1))
        group.create_task(b.right_async(2))


async def timeout(b: Branches) -> None:
    async with asyncio.timeout(3600):
        await asyncio.gather(b.left_async(1), b.right_async(2))


async def wait_for(b: Branches) -> None:
    await asyncio.gather(asyncio.wait_for(b.left_async(1), 3600), asyncio.wait_for(b.right_async(2), 3600))


async def tasks_with_code_of_their_own(b: Branches) -> None:
    async def branch(call: Any, x: int) -> int:
        found: int = await call(x)
        return found

    await asyncio.gather(asyncio.create_task(branch(b.left_async, 1)), branch(b.right_async, 2))


async def swallowed(b: Branches) -> None:
    """A plan that catches what it must not catch."""
    with suppress(BaseException):
        await asyncio.gather(b.left_async(1), b.right_async(2))


async def sync_steps(b: Branches) -> None:
    await asyncio.gather(b.left.aio(1), b.right.aio(2))


async def to_thread(b: Branches) -> None:
    await asyncio.gather(asyncio.to_thread(b.left, 1), asyncio.to_thread(b.right, 2))


async def loop_executor(b: Branches) -> None:
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(2) as pool:
        calls = [loop.run_in_executor(pool, carry(b.left), 1), loop.run_in_executor(pool, carry(b.right), 2)]
        await asyncio.wait(calls)
    for call in calls:
        await call


# ── shapes with threads ─────────────────────────────────────────────────────────────────────────────

ThreadShape: TypeAlias = Callable[[Branches], object]


def executor(b: Branches) -> None:
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(carry(b.left), 1), pool.submit(carry(b.right), 2)]
    for call in calls:
        call.result()


def bare_threads(b: Branches) -> None:
    """What a thread raises goes nowhere: the plan does not see it."""

    def quietly(call: Callable[[int], int], x: int) -> None:
        with suppress(BaseException):
            call(x)

    threads = [threading.Thread(target=carry(quietly), args=pair) for pair in ((b.left, 1), (b.right, 2))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def loop_of_its_own(b: Branches) -> None:
    asyncio.run(gather(b))


ASYNC_SHAPES: list[Shape] = [
    gather,
    return_exceptions,
    task_group,
    timeout,
    wait_for,
    tasks_with_code_of_their_own,
    swallowed,
    sync_steps,
    to_thread,
    loop_executor,
]
THREAD_SHAPES: list[ThreadShape] = [executor, bare_threads, loop_of_its_own]


def plan_of(shape: Any, b: Branches) -> Any:
    """Return a task of this shape that ends with `after`."""
    if not asyncio.iscoroutinefunction(shape):

        @task
        def plan() -> int:
            shape(b)
            return b.after(3)

        return plan

    @task(name="plan")
    async def plan_async() -> int:
        await shape(b)
        return await b.after_async(3)

    return plan_async


# ── carrying out ────────────────────────────────────────────────────────────────────────────────────


def start(desk: Desk, plan: Any, *args: Any, **options: Any) -> Any:
    return finished(desk.run(plan, *args, **options))


def resume(desk: Desk, plan: Any) -> Any:
    return finished(desk.resume(plan))


def finished(result: Any) -> Any:
    return asyncio.run(result) if asyncio.iscoroutine(result) else result


def dies(desk: Desk, plan: Any, *, at: str, nth: int, phase: str = "durable") -> None:
    """As `desk.dies`, for synchronous and asynchronous plans."""
    before = desk.store
    with desk._armed(at, phase, nth), pytest.raises(Death):
        start(desk, plan)
    assert desk.store is not before


def verified(desk: Desk) -> Iterator[str]:
    return (record.path for record in desk.records("step_verified"))
