"""What is not sent any more: a second call of what is in doubt, and whatever a stop was heard before."""

from __future__ import annotations

import asyncio

import pytest
from desk import Desk

from milepost import Key, Retry, StepFailed, effect, task
from milepost.errors import DuplicateStep, RunInterrupted
from milepost.records.model import Record
from milepost.runtime.scope import current


def test_a_second_call_of_what_is_in_doubt_is_not_told_to_take_another_key(desk: Desk) -> None:
    """A key of its own for the second call would send it twice."""

    @effect(key=lambda x: x)
    async def order(key: Key, x: int) -> int:
        raise TimeoutError

    @task
    async def plan() -> int:
        try:
            return await order(7)
        except StepFailed:
            return await order(7)

    with pytest.raises(
        DuplicateStep, match=r"'order\[7\]' is called a second time: its first call is in doubt"
    ) as told:
        asyncio.run(plan.options(**desk.options()).run("r"))
    assert "own key" not in told.value.hint
    assert "`milepost resume r` finds out" in told.value.hint
    assert len(desk.records("intent_recorded")) == 1


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_stop_heard_while_the_intent_becomes_durable_sends_nothing(desk: Desk, kind: str) -> None:
    """The intent is closed as not sent, and the resume sends once."""
    sent: list[int] = []

    @effect()
    def order(key: Key) -> int:
        sent.append(1)
        return 1

    @task(name="plan")
    def plan() -> int:
        return order()

    @task(name="plan")
    async def plan_async() -> int:
        return await order.aio()

    def stop_at_the_intent(record: Record) -> None:
        if record.kind == "intent_recorded" and not sent and desk.status() != "interrupted":
            scope = current.get()
            assert scope is not None
            scope.run.stop(15)

    stopped = (plan if kind == "sync" else plan_async).options(**desk.options(watch=stop_at_the_intent))
    with pytest.raises(RunInterrupted):
        stopped.run("r") if kind == "sync" else asyncio.run(stopped.run("r"))
    assert (sent, desk.status()) == ([], "interrupted")
    assert [record.outcome for record in desk.records("outcome_recorded")] == ["rejected"]
    resumed = (plan if kind == "sync" else plan_async).options(**desk.options())
    assert (resumed.resume("r") if kind == "sync" else asyncio.run(resumed.resume("r"))) == 1
    assert sent == [1]


def test_an_effect_with_a_retry_is_not_told_to_take_one(desk: Desk) -> None:
    """It has one; a cancelled call is what no Retry covers."""

    @effect(key=lambda x: x, retry=Retry(on=Exception))
    async def order(key: Key, x: int) -> int:
        await asyncio.Event().wait()
        return x

    @task
    async def plan() -> int:
        try:
            async with asyncio.timeout(0.01):
                return await order(7)
        except TimeoutError:
            return await order(7)

    with pytest.raises(DuplicateStep, match="its first call is in doubt") as told:
        asyncio.run(plan.options(**desk.options()).run("r"))
    assert "give the effect a Retry" not in told.value.hint
    assert "no call that was cancelled" in told.value.hint
