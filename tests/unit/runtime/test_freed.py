"""A run that is over is freed at once: a program with thousands of them does not leave them to the collector."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from desk import Desk

from milepost import step, task
from milepost.protocol.state import StepState
from milepost.runtime.active import ActiveRun
from milepost.runtime.journal import Journal


@step
def one(x: int) -> int:
    return x


@step
async def one_async(x: int) -> int:
    return x


@task
def plan() -> int:
    return one(1) + one(2)


@task
async def plan_async() -> int:
    return await one_async(1) + await one_async(2)


@contextmanager
def only_cycles_left() -> Iterator[list[object]]:
    """Yield what fills up with whatever of a run only the collector would have freed."""
    left: list[object] = []
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield left
        gc.collect()
        left += [found for found in gc.garbage if isinstance(found, ActiveRun | Journal | StepState)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_nothing_of_a_run_waits_for_the_collector(desk: Desk, kind: str) -> None:
    """Cycles of two hundred finished runs made each collection longer, and collections took a sixth of the time."""
    with only_cycles_left() as left:
        if kind == "sync":
            desk.run(plan)
        else:
            asyncio.run(desk.run(plan_async))
    assert left == []
