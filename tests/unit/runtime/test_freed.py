"""A run that is over is freed at once: a program with thousands of them does not leave them to the collector."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from desk import Desk

from milepost import step, task
from milepost.runtime.scope import current


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_nothing_of_a_run_waits_for_the_collector(desk: Desk, kind: str) -> None:
    """Cycles of two hundred finished runs made each collection longer, and collections took a sixth of the time."""
    held: list[weakref.ref[Any]] = []

    def remember(x: int) -> int:
        scope = current.get()
        assert scope is not None
        held.extend(map(weakref.ref, (scope.run, scope.run.journal)))
        return x

    @step
    def one(x: int) -> int:
        return remember(x)

    @step
    async def one_async(x: int) -> int:
        return remember(x)

    @task
    def plan() -> int:
        return one(1) + one(2)

    @task
    async def plan_async() -> int:
        return await one_async(1) + await one_async(2)

    gc.disable()
    try:
        if kind == "sync":
            desk.run(plan)
        else:
            import asyncio

            asyncio.run(desk.run(plan_async))
        assert len(held) == 4
        assert [ref() for ref in held] == [None] * 4
    finally:
        gc.enable()
