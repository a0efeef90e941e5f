"""A resume that finds its questions open has run nothing: no record says otherwise, and no limit counts it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from desk import Desk
from people import ADA, BOB, says
from provider import Provider

from milepost import Key, Limits, effect, step, task
from milepost.errors import ApprovalNeeded, LimitReached, StoreWentBack
from milepost.runtime.opening import read_snapshot
from milepost.views.health import facts_of


def drafting() -> Any:
    @step(review="after")
    def draft(topic: str) -> str:
        return topic

    @task(limits=Limits(resumes=3))
    def writing(topic: str) -> str:
        return draft(topic)

    return writing


def test_a_resume_without_an_answer_leaves_no_trace_and_is_no_death(desk: Desk) -> None:
    plan = drafting()
    for _ in range(8):
        with pytest.raises(ApprovalNeeded):
            desk.run(plan, "tea")
    assert desk.records("run_resumed") == []
    assert (desk.status(), desk.snapshot().fruitless) == ("asking", 0)
    says(desk, ADA, "approve")
    assert desk.resume(plan) == "tea"
    assert [record.number for record in desk.records("run_resumed")] == [1]
    facts = facts_of(read_snapshot(desk.store, "r", None))
    assert (facts.resumes, facts.deaths) == (1, 0)


def test_some_answers_are_entered_while_others_are_missing_and_nothing_is_resumed(desk: Desk) -> None:
    provider = Provider(desk.clock)

    @effect(approve="before", key=lambda number: number, key_lifetime=timedelta(days=1))
    def pay(key: Key, number: int) -> Any:
        return provider.apply(key, number)

    @task
    def month() -> list[Any]:
        return pay.map([1, 2])

    with pytest.raises(ApprovalNeeded):
        desk.run(month)
    first, second = desk.questions
    says(desk, ADA, "approve", of=first)
    for _ in range(2):
        with pytest.raises(ApprovalNeeded, match=r"pay\[2\]"):
            desk.resume(month)
    assert len(desk.records("answer_entered")) == 1
    assert (desk.records("run_resumed"), desk.status()) == ([], "asking")
    says(desk, BOB, "approve", of=second)
    assert len(desk.resume(month)) == 2


def test_resumes_that_ran_something_count_against_their_limit_as_ever(desk: Desk) -> None:
    plan = drafting()
    with pytest.raises(ApprovalNeeded):
        desk.run(plan, "tea")
    for _ in range(3):
        says(desk, ADA, "redo")
        with pytest.raises(ApprovalNeeded):
            desk.resume(plan)
    says(desk, ADA, "redo")
    with pytest.raises(LimitReached):
        desk.resume(plan)


def test_the_question_that_stands_in_the_way_is_told_not_one_that_was_answered(desk: Desk) -> None:
    """The store was put back to before an answer was acted on: the answer is there, what is asked now is another."""
    plan = drafting()
    with pytest.raises(ApprovalNeeded):
        desk.run(plan, "tea")
    says(desk, ADA, "approve")
    backup = desk.store
    desk.next_process()
    desk.dies_at_its_end(plan, "tea")
    desk.store = backup
    with pytest.raises(StoreWentBack, match="went back in time"):
        desk.resume(plan)
