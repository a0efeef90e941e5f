"""Versions, attempts, several questions at once, and a store that went back in time: the other kinds of question."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from desk import Desk
from provider import Provider

from milepost import CannotTell, Found, Key, NotFound, Retry, StepFailed, effect, step, task
from milepost.errors import AttemptsUsed, OutcomeUnknown, RefusedError, RunEnded, StoreWentBack, VersionsChanged

ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


# ── versions_changed ────────────────────────────────────────────────────────────────────────────────


def versioned(*, of_task: str = "1", of_step: str = "1", model: str = "large", on_change: Any = "ask") -> Any:
    @step(version=of_step)
    def drafted() -> str:
        ran.append("draft")
        return f"draft {of_step}"

    @step
    def shortened(text: str) -> str:
        ran.append("shorten")
        return text[:5]

    @task(version=of_task, model=model, on_version_change=on_change)
    def writes_drafts() -> str:
        return shortened(drafted())

    return writes_drafts


def test_record_notes_old_and_new_versions_and_goes_on(desk: Desk) -> None:
    """The default: a prompt that was mended must not stop a run, but the record has to say so."""
    desk.dies_at_its_end(versioned(on_change="record"))
    assert desk.resume(versioned(of_step="2", model="small", on_change="record")) == "draft"
    notes = {note.what: (note.old, note.new) for note in desk.records("versions_changed")}
    assert notes[""][0]["model"] == "large"
    assert notes[""][1]["model"] == "small"
    assert notes["drafted"][0]["version"] == "1"
    assert notes["drafted"][1]["version"] == "2"


def test_versions_are_noted_once(desk: Desk) -> None:
    desk.dies_at_its_end(versioned(on_change="record"))
    desk.dies_at_its_end(versioned(of_step="2", on_change="record"))
    desk.resume(versioned(of_step="2", on_change="record"))
    assert len(desk.records("versions_changed")) == 1


def asked_about_versions(desk: Desk) -> Any:
    desk.dies_at_its_end(versioned())
    ran.clear()
    newer = versioned(of_step="2")
    with pytest.raises(VersionsChanged, match=r"drafted: version 1 → 2"):
        desk.resume(newer)
    assert ran == []
    return newer


def test_versions_can_be_accepted(desk: Desk) -> None:
    newer = asked_about_versions(desk)
    desk.answer("accept")
    assert desk.resume(newer) == "draft"
    assert ran == []


def test_versions_can_be_redone(desk: Desk) -> None:
    """The step made by the old version runs again, and each later one whose inputs come out different."""
    newer = asked_about_versions(desk)
    desk.answer("redo")
    assert desk.resume(newer) == "draft"
    assert ran == ["draft", "shorten"]


def test_versions_can_stop_the_run(desk: Desk) -> None:
    newer = asked_about_versions(desk)
    desk.answer("stop")
    with pytest.raises(RunEnded):
        desk.resume(newer)


def test_another_model_can_be_redone_for_every_step(desk: Desk) -> None:
    desk.dies_at_its_end(versioned())
    ran.clear()
    with pytest.raises(VersionsChanged, match="model large → small"):
        desk.resume(versioned(model="small"))
    desk.answer("redo")
    desk.resume(versioned(model="small"))
    assert ran == ["draft", "shorten"]


def test_accepted_versions_that_change_again_are_asked_about_again(desk: Desk) -> None:
    newer = asked_about_versions(desk)
    desk.answer("accept")
    desk.dies_at_its_end(newer)
    with pytest.raises(VersionsChanged, match="2 → 3"):
        desk.resume(versioned(of_step="3"))


def nested_versions(of_inner: str) -> Any:
    @step(version=of_inner)
    def inner_draft() -> str:
        ran.append("inner")
        return f"inner {of_inner}"

    @step
    def outer_draft() -> str:
        ran.append("outer")
        return inner_draft()

    @task(on_version_change="ask")
    def nests_drafts() -> str:
        return outer_draft()

    return nests_drafts


@pytest.mark.parametrize(
    ("choice", "result", "bodies"), [("accept", "inner 1", []), ("redo", "inner 2", ["outer", "inner"])]
)
def test_versions_of_steps_inside_a_verified_one_are_compared(
    desk: Desk, choice: str, result: str, bodies: list[str]
) -> None:
    """The inner records no longer count, so the outer checkpoint carries their versions."""
    desk.dies_at_its_end(nested_versions("1"))
    ran.clear()
    with pytest.raises(VersionsChanged, match="within inner_draft"):
        desk.resume(nested_versions("2"))
    desk.answer(choice)
    assert desk.resume(nested_versions("2")) == result
    assert ran == bodies


# ── attempts_used ───────────────────────────────────────────────────────────────────────────────────


def failing(times: int, **options: Any) -> Any:
    left = [times]

    @step(**options)
    def fails_first() -> str:
        ran.append("body")
        if left[0] > 0:
            left[0] -= 1
            raise ValueError("not yet")
        return "done"

    @task
    def fails() -> str:
        return fails_first()

    return fails


def test_without_a_policy_an_exception_ends_the_run_and_the_next_resume_starts_the_step_again(desk: Desk) -> None:
    plan = failing(1)
    with pytest.raises(StepFailed) as failed:
        desk.run(plan)
    assert isinstance(failed.value.__cause__, ValueError)
    assert desk.status() == "failed"
    assert desk.resume(plan) == "done"


def test_three_starts_are_allowed_and_then_a_person_is_asked(desk: Desk) -> None:
    plan = failing(4)
    for _ in range(3):
        with pytest.raises(StepFailed):
            desk.run(plan)
    with pytest.raises(AttemptsUsed, match=r"started 3 times .*ValueError: not yet"):
        desk.resume(plan)
    assert len(ran) == 3
    desk.answer("again")
    with pytest.raises(StepFailed):
        desk.resume(plan)
    assert desk.resume(plan) == "done"


def test_attempts_used_can_stop_the_run(desk: Desk) -> None:
    plan = failing(9)
    for _ in range(3):
        with pytest.raises(StepFailed):
            desk.run(plan)
    with pytest.raises(AttemptsUsed):
        desk.resume(plan)
    desk.answer("stop")
    with pytest.raises(RunEnded):
        desk.resume(plan)


def test_a_body_that_kills_its_process_is_started_three_times(desk: Desk) -> None:
    """A start is counted when it is made, not when it ends."""
    plan = failing(0)
    for _ in range(3):
        desk.dies(plan, at="body", phase="before", nth=2)
    with pytest.raises(AttemptsUsed, match="the process died each time"):
        desk.resume(plan)
    assert ran == []


def test_a_policy_tries_again_in_the_same_process(desk: Desk) -> None:
    plan = failing(2, retry=Retry(on=ValueError, attempts=3, first_wait=timedelta(seconds=5)))
    assert desk.run(plan) == "done"
    assert [r.attempt for r in desk.records("step_started")] == [1, 2, 3]
    assert len(desk.clock.waits) == 2


def test_a_policy_that_is_used_up_asks(desk: Desk) -> None:
    plan = failing(3, retry=Retry(on=ValueError, attempts=3))
    with pytest.raises(AttemptsUsed):
        desk.run(plan)
    desk.answer("again")
    assert desk.resume(plan) == "done"


def test_a_policy_that_raises_gives_the_same_failure_on_each_resume(desk: Desk) -> None:
    plan = failing(9, retry=Retry(on=ValueError, attempts=2, then="raise"))
    with pytest.raises(StepFailed, match="not yet") as first:
        desk.run(plan)
    with pytest.raises(StepFailed) as second:
        desk.resume(plan)
    assert str(first.value) == str(second.value)
    assert len(ran) == 2


def test_an_exception_the_policy_does_not_name_is_not_retried(desk: Desk) -> None:
    plan = failing(1, retry=Retry(on=KeyError, attempts=3))
    with pytest.raises(StepFailed):
        desk.run(plan)
    assert len(ran) == 1


def test_a_deadline_counts_anew_when_a_person_says_again(desk: Desk) -> None:
    policy = Retry(on=ValueError, attempts=99, first_wait=timedelta(minutes=5), deadline=timedelta(minutes=12))
    plan = failing(4, retry=policy)
    with pytest.raises(AttemptsUsed):
        desk.run(plan)
    assert len(ran) == 3
    desk.answer("again")
    assert desk.resume(plan) == "done"
    assert len(ran) == 5


# ── store_went_back ─────────────────────────────────────────────────────────────────────────────────


def posts_two(provider: Provider, *, lookup: bool) -> Any:
    def find_of_two(key: Key, number: int) -> Found[str] | NotFound | CannotTell:
        return provider.find(key)

    asked: dict[str, Any] = {"lookup": find_of_two, "settle": timedelta(0)} if lookup else {}

    @effect(provider="accounting", key=lambda number: number, **asked)
    def post_of_two(key: Key, number: int) -> str:
        return provider.apply(key, number)

    @task
    def posts() -> list[str]:
        return post_of_two.map([1, 2])

    return posts


def gone_back(desk: Desk, *, lookup: bool) -> tuple[Provider, Any]:
    """Post two, then put the store back to where only the first was posted, as a restored backup does."""
    provider = Provider(desk.clock)
    plan = posts_two(provider, lookup=lookup)
    desk.dies(plan, at="append:intent_recorded", phase="before", nth=2, settled=True)
    backup = desk.store
    desk.next_process()
    desk.dies_at_its_end(plan)
    desk.store = backup
    with pytest.raises(StoreWentBack, match="went back in time"):
        desk.resume(plan)
    return provider, plan


def test_a_store_that_went_back_is_noticed_and_nothing_is_sent(desk: Desk) -> None:
    provider, _ = gone_back(desk, lookup=True)
    assert len(provider.calls) == 2
    assert [choice.name for choice in desk.asked().choices] == ["go-on-in-doubt", "stop"]


def test_what_was_lost_before_it_was_durable_is_not_missed(desk: Desk) -> None:
    """The witness is never ahead: a process that died before its commit leaves an honest store behind."""
    provider = Provider(desk.clock)
    plan = posts_two(provider, lookup=True)
    desk.dies(plan, at="append:outcome_recorded", phase="done")
    assert desk.resume(plan) == ["receipt-1", "receipt-2"]
    assert len(provider.ledger) == 2


def test_in_doubt_an_effect_without_record_is_looked_up_before_it_is_sent(desk: Desk) -> None:
    provider, plan = gone_back(desk, lookup=True)
    desk.answer("go-on-in-doubt")
    assert desk.resume(plan) == ["receipt-1", "receipt-2"]
    assert len(provider.ledger) == 2


def test_in_doubt_an_effect_that_cannot_be_looked_up_is_asked_about(desk: Desk) -> None:
    provider, plan = gone_back(desk, lookup=False)
    desk.answer("go-on-in-doubt")
    with pytest.raises(OutcomeUnknown, match=r"post_of_two\[2\]"):
        desk.resume(plan)
    desk.answer("applied", ref="receipt-2", result="receipt-2")
    assert desk.resume(plan) == ["receipt-1", "receipt-2"]
    assert len(provider.ledger) == 2


def test_a_store_that_went_back_can_stop_the_run(desk: Desk) -> None:
    provider, plan = gone_back(desk, lookup=True)
    desk.answer("stop")
    with pytest.raises(RunEnded):
        desk.resume(plan)
    assert len(provider.calls) == 2


# ── several at once ─────────────────────────────────────────────────────────────────────────────────


def test_several_questions_are_open_at_once_and_all_must_be_answered(desk: Desk) -> None:
    """Branches that ask do not hide each other; nothing runs until a person said all there is to say."""
    provider = Provider(desk.clock)

    @effect(provider="accounting", key=lambda number: number)
    async def post_in_branch(key: Key, number: int) -> str:
        return provider.apply(key, number)

    @task
    async def branches() -> list[str]:
        return list(await asyncio.gather(post_in_branch(1), post_in_branch(2)))

    for _ in range(2):
        provider.will_lose_its_answer()
    with pytest.raises(StepFailed):
        asyncio.run(desk.run(branches))
    with pytest.raises(OutcomeUnknown) as asked:
        asyncio.run(desk.resume(branches))
    first, second = desk.questions
    assert asked.value.count == 2
    desk.answer("applied", result="receipt-2", question=second)
    with pytest.raises(OutcomeUnknown) as still:
        asyncio.run(desk.resume(branches))
    assert (still.value.count, still.value.path) == (1, first.path)
    desk.answer("applied", result="receipt-1", question=first)
    assert asyncio.run(desk.resume(branches)) == ["receipt-1", "receipt-2"]
    assert len(provider.calls) == 2


def test_an_answer_the_question_does_not_offer_is_refused(desk: Desk) -> None:
    """An answer is a row without a seal: what was not offered must not fall into the nearest branch."""
    newer = asked_about_versions(desk)
    desk.answer("reddo")
    with pytest.raises(RefusedError, match="reddo"):
        desk.resume(newer)
    assert ran == []
