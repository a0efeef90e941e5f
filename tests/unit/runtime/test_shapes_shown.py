"""Whoever watches a run sees what is durable, and nothing before; whoever waits leaves nothing behind."""

from __future__ import annotations

import asyncio

import pytest
from branches import start
from desk import Desk

from milepost import step, task
from milepost.records.model import Record
from milepost.records.written import encode_record
from milepost.runtime.bell import Bell
from milepost.stores.memory import MemoryStore

pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize("is_async", [False, True], ids=["threads", "loop"])
def test_nothing_is_shown_before_it_is_durable(desk: Desk, is_async: bool) -> None:
    """Others append between an append and its commit: what they wrote is not durable with it."""
    too_early: list[str] = []
    shown: list[str] = []

    def watch(record: Record) -> None:
        durable = {line.body for line in desk.store.records("r")}
        shown.append(record.kind)
        if encode_record(record) not in durable:
            too_early.append(record.kind)

    @step
    def match(x: int) -> int:
        return x

    @task(name="plan")
    def plan() -> int:
        return sum(match.map(range(12), concurrency=4))

    @task(name="plan")
    async def plan_async() -> int:
        return sum(await asyncio.gather(*(match.aio(x) for x in range(12))))

    start(desk, plan_async if is_async else plan, watch=watch)
    assert too_early == []
    assert shown == [record.kind for record in desk.records()]


def test_a_wait_that_is_over_leaves_nothing_behind() -> None:
    """A run may wait for days, a second at a time."""
    bell = Bell()

    async def waits() -> None:
        assert not await bell.wait_async(lambda: False, 0)
        assert await bell.wait_async(lambda: True, 0)
        waiting = asyncio.ensure_future(bell.wait_async(lambda: False))
        await asyncio.sleep(0)
        assert len(bell._waiting) == 1
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(waits())
    assert bell._waiting == []


def test_one_memory_store_is_not_taken_for_another() -> None:
    """They remember nothing, this machine's witnesses do: a second store must not look like the first gone back."""

    @step
    def match(x: int) -> int:
        return x

    @task
    def plan() -> int:
        return match(1)

    for _ in range(2):
        assert plan.options(store=MemoryStore()).run("r") == 1
