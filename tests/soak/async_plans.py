"""Asynchronous plans in five shapes, declared once; whoever runs them is the process in `running`.

What a body waits for happens outside, at a moment that the schedule chooses. Called by `async_worlds`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from functools import cache
from typing import Any, Protocol

from clock import MovableClock
from schedule_worlds import ATTEMPTS, Flaky, Provider

from milepost import CannotTell, Found, Key, NotFound, Retry, effect, sleep, step, task
from milepost.runtime.registry import register_call


class Running(Protocol):
    """The process that runs a plan: where its provider is, how often what failed, and how time passes."""

    provider: Provider

    async def outside(self) -> None: ...
    def alive(self) -> None: ...
    def fails_now(self, name: str) -> bool: ...
    def flakes_now(self, name: str) -> bool: ...


running: Running = None  # type: ignore[assignment]  # set by the process that begins


def name_of(name: str, given: int) -> str:
    return name


@step(key=name_of)
async def fetch(name: str, given: int) -> int:
    await running.outside()
    return given + len(name)


@step
async def twin(given: int) -> int:
    await running.outside()
    return given * 2


def is_positive(output: int) -> bool:
    return output > 0


@step(key=name_of, retry=Retry(on=Flaky, attempts=ATTEMPTS), verify=is_positive)
async def flaky(name: str, given: int) -> int:
    await running.outside()
    if running.flakes_now(name):
        raise Flaky(name)
    return given + 7


@step(key=name_of)
async def fails(name: str, given: int) -> int:
    await running.outside()
    if running.fails_now(name):
        raise RuntimeError(name)
    return given + 11


@step(key=name_of)
def crunch(name: str, given: int) -> int:
    running.alive()
    return given * 3


def find(key: Key, name: str) -> Found[dict[str, str]] | NotFound | CannotTell:
    running.alive()
    return running.provider.find(key, name)


async def find_slowly(key: Key, name: str) -> Found[dict[str, str]] | NotFound | CannotTell:
    await running.outside()
    found = running.provider.find(key, name)
    await running.outside()
    return found


async def posted(key: Key, name: str) -> dict[str, str]:
    await running.outside()
    receipt = running.provider.post(str(key), name, 0)
    await running.outside()
    return receipt


def mailed(key: Key, name: str) -> dict[str, str]:
    running.alive()
    return running.provider.post(str(key), name, 1)


def plan(shape: str, character: str) -> Any:
    """Return the task of a shape against a provider of this character, as a process that declares no other has it."""
    tasks, effects = _declared(character)
    for declared in effects:
        register_call(declared.spec)
    return tasks[shape]


@cache
def _declared(character: str) -> tuple[dict[str, Any], tuple[Any, ...]]:
    dealings = Provider(character, MovableClock()).dealings()
    looks_up = "lookup" in dealings
    post = effect(key=lambda name: name, name="post", **{**dealings, **({"lookup": find_slowly} if looks_up else {})})(
        posted
    )
    mail = effect(key=lambda name: name, name="mail", **{**dealings, **({"lookup": find} if looks_up else {})})(mailed)

    @step(key=name_of)
    async def outer(name: str, given: int) -> int:
        first, receipt, second = await asyncio.gather(fetch("in", given), post(f"{name}-in"), fetch("out", given))
        return first + second + len(receipt["done"]) + await fails(f"deep-{name}", given)

    async def gathered(given: int) -> list[Any]:
        found = await asyncio.gather(fetch("b", given), post("c"), outer("d", given), flaky("e", given))
        return [*found, await post("last")]

    async def grouped(given: int) -> list[Any]:
        calls: list[Awaitable[Any]] = [post("c"), fails("f", given), twin(given), twin(given), flaky("e", given)]
        async with asyncio.TaskGroup() as group:
            going = [group.create_task(call) for call in calls]  # type: ignore[arg-type]
        return [work.result() for work in going]

    async def mapped(given: int) -> list[Any]:
        receipts = await post.map(["p", "q", "r", "s"], concurrency=3)
        twins = twin.map([given, given, given + 1], concurrency=2)
        doubled, fetched = await asyncio.gather(twins, fails("f", given))
        return [*receipts, *doubled, fetched]

    async def threaded(given: int) -> list[Any]:
        found = await asyncio.gather(crunch.aio("k", given), mail.aio("m"), fetch("b", given), mail.aio("n"))
        await sleep.aio(timedelta(minutes=1), name="nap")
        return [*found, await crunch.aio("l", given)]

    async def nested(given: int) -> list[Any]:
        async with asyncio.TaskGroup() as group:
            left = group.create_task(outer("left", given))
            right = group.create_task(asyncio.wait_for(outer("right", given), None))
        return [left.result(), right.result(), *await post.map(["p", "q"], concurrency=2)]

    shapes = {"gather": gathered, "group": grouped, "map": mapped, "threads": threaded, "nested": nested}
    return {shape: task(name=shape)(_whole(body)) for shape, body in shapes.items()}, (post, mail)


def _whole(body: Any) -> Any:
    async def plan(given: int) -> list[Any]:
        first = await fetch("a", given)
        return [first, *await body(first)]

    return plan


SHAPES = ("gather", "group", "map", "threads", "nested")
