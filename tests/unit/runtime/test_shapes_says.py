"""What a body says while it runs: heartbeats, a cursor for the next attempt, what a model cost."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from branches import BrokenError, dies, resume, start
from desk import Desk

from milepost import Heartbeat, Key, Retry, StepFailed, effect, heartbeat, last_heartbeat, spent, step, task
from milepost.errors import NotEncodable

pytestmark = pytest.mark.timeout(60)


def pages(found: list[Heartbeat | None], *, fails: list[bool]) -> Any:
    """Return a plan that reads four pages and goes on from the one the attempt before had reached."""

    @step(retry=Retry(on=BrokenError, attempts=2))
    async def read(start: int) -> int:
        said = last_heartbeat()
        found.append(said)
        for page in range(said.cursor["page"] + 1 if said else start, 4):
            heartbeat(page, 4, f"page {page}", cursor={"page": page})
            if page == 2 and fails.pop():
                raise BrokenError
        return 4

    @task
    async def plan(start: int) -> int:
        return await read(start)

    return plan


def test_the_next_attempt_reads_the_cursor_of_the_one_before(desk: Desk) -> None:
    found: list[Heartbeat | None] = []
    assert start(desk, pages(found, fails=[False, True]), 0) == 4
    assert found == [None, Heartbeat(2, 4, "page 2", {"page": 2})]


def test_a_cursor_is_there_after_a_death(desk: Desk) -> None:
    """What was said before something durable is there for the next process."""
    found: list[Heartbeat | None] = []

    @step
    def inner(x: int) -> int:
        return x

    @step
    def outer(x: int) -> int:
        found.append(last_heartbeat())
        heartbeat(1, cursor=["a", 1])
        return inner(x)

    @task
    def plan() -> int:
        return outer(1)

    dies(desk, plan, at="append:step_started", nth=2)
    assert resume(desk, plan) == 1
    assert found == [None, Heartbeat(1, None, "", ["a", 1])]


def test_a_cursor_into_other_inputs_is_not_found(desk: Desk) -> None:
    """After an edit the step reads something else: where the old one stood says nothing."""
    found: list[Heartbeat | None] = []

    def plan_for(x: int) -> Any:
        @step
        def read(x: int) -> int:
            found.append(last_heartbeat())
            heartbeat(1, cursor=x)
            if x == 1:
                raise BrokenError
            return x

        @task
        def plan() -> int:
            return read(x)

        return plan

    with pytest.raises(StepFailed):
        start(desk, plan_for(1))
    assert resume(desk, plan_for(2)) == 2
    assert found == [None, None]


def test_a_cursor_is_small_data(desk: Desk) -> None:
    @step
    def read(x: int) -> int:
        heartbeat(1, cursor="x" * 5000)
        return x

    @task
    def plan() -> int:
        return read(1)

    with pytest.raises((NotEncodable, StepFailed), match="heartbeat"):
        start(desk, plan)


def test_an_effect_says_nothing(desk: Desk) -> None:
    """It is one write: there is no half of it to go on from."""

    @effect()
    def post(key: Key, x: int) -> int:
        heartbeat(1, 2, "half")
        return x

    @task
    def plan() -> int:
        heartbeat(1)
        return post(1)

    assert start(desk, plan) == 1
    assert desk.records("heartbeat_recorded") == []
    assert desk.snapshot().steps == {}


def test_what_a_model_cost_is_added_up_in_the_checkpoint(desk: Desk) -> None:
    @step
    async def extract(x: int) -> int:
        async def call() -> None:
            spent(input_tokens=100, output_tokens=7, cost=Decimal("0.10"))

        await asyncio.gather(call(), call())
        await asyncio.to_thread(spent, cost=0.1, currency="EUR")
        return x

    @task
    async def plan() -> int:
        return await extract(1)

    start(desk, plan)
    (record,) = desk.records("step_verified")
    assert record.spent == {"input_tokens": 200, "output_tokens": 14, "cost": "0.30", "currency": "EUR"}
