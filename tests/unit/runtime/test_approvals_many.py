"""Approval of many calls: all items of a `.map` are asked about together, and answered all, some or none."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from desk import Desk
from people import ADA, says
from provider import Provider

from milepost import Declined, Key, effect, step, task
from milepost.errors import ApprovalNeeded

MANY = 300


@pytest.fixture
def provider(desk: Desk) -> Provider:
    return Provider(desk.clock, honours_keys=True)


def posting_all(provider: Provider, count: int, **more: Any) -> Any:
    @effect(key=lambda item: item, approve="before", provider="accounting", summary="Post {item}")
    def post(key: Key, item: str) -> str:
        return provider.apply(key, item)

    @task
    def posts() -> list[str]:
        return post.map([f"i{number}" for number in range(count)], **more)

    return posts


def posting_all_async(provider: Provider, count: int, **more: Any) -> Any:
    @effect(key=lambda item: item, approve="before", provider="accounting", summary="Post {item}")
    async def post(key: Key, item: str) -> str:
        return provider.apply(key, item)

    @task
    async def posts() -> list[str]:
        return await post.map([f"i{number}" for number in range(count)], **more)

    return posts


def run(desk: Desk, plan: Any) -> Any:
    """Start or resume a plan, asynchronous or not."""
    going = plan.options(**desk.options()).run("r")
    return asyncio.run(going) if asyncio.iscoroutine(going) else going


plans = pytest.mark.parametrize("plan_of", [posting_all, posting_all_async], ids=["sync", "async"])


@plans
def test_all_items_are_asked_about_before_any_is_sent(desk: Desk, provider: Provider, plan_of: Any) -> None:
    """In their order, and by no more threads than run at once."""
    plan = plan_of(provider, MANY, concurrency=4)
    with pytest.raises(ApprovalNeeded) as caught:
        run(desk, plan)
    assert (caught.value.count, len(desk.questions)) == (MANY, MANY)
    assert [q.path for q in desk.questions] == [f"post[i{number}]" for number in range(MANY)]
    assert not [t for t in threading.enumerate() if t.name.startswith("milepost-map")]
    for question in desk.questions:
        says(desk, ADA, "approve", of=question)
    assert len(run(desk, plan)) == MANY
    assert len(provider.ledger) == MANY


def test_an_answer_reads_its_own_question_only(desk: Desk, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two thousand answers took a minute while each of them read two thousand questions."""
    with pytest.raises(ApprovalNeeded):
        run(desk, posting_all(provider, 3))
    asked, read = desk.questions, desk.store.questions

    def read_one(*args: Any, **more: Any) -> list[Any]:
        assert more.get("question_id"), "all of them are read"
        return read(*args, **more)

    monkeypatch.setattr(desk.store, "questions", read_one)
    for question in asked:
        says(desk, ADA, "approve", of=question)


@plans
def test_one_at_a_time_asks_about_all_as_well(desk: Desk, provider: Provider, plan_of: Any) -> None:
    with pytest.raises(ApprovalNeeded):
        run(desk, plan_of(provider, 5))
    assert len(desk.questions) == 5


def test_nothing_is_sent_while_one_is_not_answered(desk: Desk, provider: Provider) -> None:
    plan = posting_all(provider, 3)
    with pytest.raises(ApprovalNeeded):
        run(desk, plan)
    for question in desk.questions[:2]:
        says(desk, ADA, "approve", of=question)
    with pytest.raises(ApprovalNeeded):
        run(desk, plan)
    assert provider.calls == []


@plans
@pytest.mark.parametrize("concurrency", [1, 3])
def test_some_are_declined_and_the_others_sent(desk: Desk, provider: Provider, plan_of: Any, concurrency: int) -> None:
    """Declining one is a decision about that one; the plan is told of it with the results of the others."""
    plan = plan_of(provider, 5, concurrency=concurrency)
    with pytest.raises(ApprovalNeeded):
        run(desk, plan)
    for question in desk.questions:
        says(desk, ADA, "decline" if question.path in ("post[i0]", "post[i3]") else "approve", of=question)
    for _ in range(2):
        with pytest.raises(Declined, match=r"post\[i0\]") as caught:
            run(desk, plan)
        told = [result.path if isinstance(result, Declined) else "sent" for result in caught.value.results]
        assert told == ["post[i0]", "sent", "sent", "post[i3]", "sent"]
    assert sorted(entry[1] for entry in provider.ledger) == ["i1", "i2", "i4"]


@pytest.mark.parametrize("nth", [2, 4])
def test_a_death_while_they_are_asked_about_asks_about_the_rest(desk: Desk, provider: Provider, nth: int) -> None:
    plan = posting_all(provider, 4)
    desk.dies(plan, at="ask", phase="before", nth=nth, settled=True)
    assert len(desk.questions) == nth - 1
    for question in desk.questions:
        says(desk, ADA, "approve", of=question)
    with pytest.raises(ApprovalNeeded):
        run(desk, plan)
    assert len(desk.questions) == 4 - (nth - 1)
    for question in desk.questions:
        says(desk, ADA, "approve", of=question)
    assert len(run(desk, plan)) == 4
    assert len(desk.records("question_asked")) == 4


def test_items_that_were_sent_are_not_asked_about_again(desk: Desk, provider: Provider) -> None:
    plan = posting_all(provider, 3)
    with pytest.raises(ApprovalNeeded):
        run(desk, plan)
    for question in desk.questions:
        says(desk, ADA, "approve", of=question)
    desk.dies(plan, at="append:intent_recorded", nth=2, phase="before", settled=True)
    assert run(desk, plan) == ["receipt-1", "receipt-2", "receipt-3"]
    assert len(desk.records("question_asked")) == 3


def test_steps_of_a_map_are_asked_about_together_as_well(desk: Desk) -> None:
    ran = []

    @step(key=lambda item: item, approve="before")
    def dig(item: str) -> str:
        ran.append(item)
        return item

    @task
    def digs() -> list[str]:
        return dig.map(["a", "b", "c"], concurrency=2)

    with pytest.raises(ApprovalNeeded):
        run(desk, digs)
    assert (ran, len(desk.questions)) == ([], 3)
    for question in desk.questions:
        says(desk, ADA, "approve", of=question)
    assert run(desk, digs) == ["a", "b", "c"]


def test_all_that_are_gathered_are_asked_about_together(desk: Desk, provider: Provider) -> None:
    @effect(key=lambda item: item, approve="before", provider="accounting")
    async def post(key: Key, item: str) -> str:
        return provider.apply(key, item)

    @task
    async def posts() -> list[str]:
        return list(await asyncio.gather(*(post(item) for item in "abc")))

    with pytest.raises(ApprovalNeeded):
        run(desk, posts)
    assert len(desk.questions) == 3


def test_an_edited_item_is_the_one_that_is_sent(desk: Desk, provider: Provider) -> None:
    """Asked about ahead and carried out later: the edit is put in once, and stands for the plan's own request."""

    @effect(key=lambda item: item, approve="before", provider="accounting")
    def post(key: Key, item: str, amount: int = 1) -> str:
        return provider.apply(key, [item, amount])

    @task
    def posts() -> list[str]:
        return post.map(["a", "b"])

    with pytest.raises(ApprovalNeeded):
        run(desk, posts)
    first, second = desk.questions
    says(desk, ADA, "edit", of=first, request={"item": "a", "amount": 7})
    says(desk, ADA, "approve", of=second)
    desk.dies_at_its_end(posts)
    assert run(desk, posts) == ["receipt-1", "receipt-2"]
    assert [entry[1] for entry in provider.ledger] == [["a", 7], ["b", 1]]
