"""An approval that was right when it was given and is not any more when it would be used."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from desk import Desk
from people import ADA, BOB, says
from posting import posting
from provider import Provider

from milepost import Key, Limits, NotApplied, Rate, Retry, StepFailed, effect, step, task
from milepost.errors import AnswerRefused, ApprovalNeeded, OutcomeUnknown, QuestionUnknown, SourceChanged
from milepost.records.identity import Identity
from milepost.stores.memory import MemoryStore

HOUR = timedelta(hours=1)


@pytest.fixture
def provider(desk: Desk) -> Provider:
    return Provider(desk.clock, honours_keys=True)


def asks(desk: Desk, plan: Any, match: str = "post_invoice", **options: Any) -> None:
    with pytest.raises(ApprovalNeeded, match=match):
        desk.run(plan, "INV-7", **options)


def approving(provider: Provider, **options: Any) -> Any:
    return posting(provider, approve="before", **options)


@pytest.mark.parametrize(
    "now",
    [{"approvals": 2}, {"approvers": ("finance",)}, {"approval_expires": HOUR}],
    ids=lambda rule: next(iter(rule)),
)
def test_a_rule_that_is_another_now_voids_it(desk: Desk, provider: Provider, now: dict[str, Any]) -> None:
    """Who tightens the rule after an accident must not find that an older answer still opens the door."""
    asks(desk, approving(provider))
    says(desk, Identity("mallory@office"), "approve")
    asks(desk, approving(provider, **now), "Asked anew: the approval by mallory@office is void, .*approval: ")
    assert provider.calls == []


def test_it_expires_also_while_a_rate_is_waited_for(desk: Desk, provider: Provider) -> None:
    """Between the check and the send lies a wait of hours: what counts is the moment of the send."""

    @effect(approve="before", approval_expires=HOUR, key=lambda item: item, key_lifetime=24 * HOUR)
    def order(key: Key, item: str) -> Any:
        return provider.apply(key, item)

    @task(limits=Limits(sends=Rate(1, 2 * HOUR)))
    def orders() -> list[Any]:
        return order.map(["tea", "salt"])

    with pytest.raises(ApprovalNeeded):
        desk.run(orders)
    for question in desk.questions:
        says(desk, ADA, "approve", of=question)
    with pytest.raises(ApprovalNeeded, match="has expired"):
        desk.resume(orders)
    assert len(provider.calls) == 1
    says(desk, ADA, "approve")
    assert len(desk.resume(orders)) == 2


def test_the_agent_is_known_by_its_user_as_people_are(desk: Desk, provider: Provider) -> None:
    """`MILEPOST_AGENT=ada` and the account `ada@office` are one, like one person at two doors."""
    asks(desk, approving(provider), environ={"MILEPOST_AGENT": "Ada"})
    with pytest.raises(AnswerRefused, match="runs the task"):
        says(desk, ADA, "approve")
    says(desk, BOB, "approve")


def test_who_goes_on_with_the_run_as_its_agent_has_not_approved_it(desk: Desk, provider: Provider) -> None:
    plan = approving(provider)
    asks(desk, plan)
    says(desk, ADA, "approve")
    asks(desk, plan, "ada@office is void, ada@office runs the task", environ={"MILEPOST_AGENT": "ada@office"})
    assert provider.calls == []
    with pytest.raises(AnswerRefused, match="runs the task"):
        says(desk, ADA, "approve")
    says(desk, BOB, "approve")
    assert desk.resume(plan) == "receipt-1"


def test_an_answer_with_the_runs_key_is_about_one_question_only(desk: Desk, provider: Provider, tmp_path: Path) -> None:
    """Who keeps a sealed answer and puts an older store back must not get another request through with it."""
    earlier = Desk(MemoryStore(), tmp_path / "earlier")
    earlier.seal_key = desk.seal_key = b"k" * 32
    asks(earlier, approving(provider))
    kept = says(earlier, ADA, "approve")
    asks(desk, approving(provider, amount=lambda: 1_000_000))
    with pytest.raises(QuestionUnknown):
        desk.store.answer(kept)
    asks(desk, approving(provider, amount=lambda: 1_000_000))
    assert provider.calls == []


def test_a_summary_that_ends_its_sentence_is_not_given_another_full_stop(desk: Desk, provider: Provider) -> None:
    asks(desk, approving(provider, summary="Pay Foo & Co."))
    assert desk.question.sentence == "post_invoice is to be sent to accounting: Pay Foo & Co."


# ── expiry after a first use ────────────────────────────────────────────────────────────────────────


def test_it_expires_again_when_nothing_came_of_its_use(desk: Desk, provider: Provider) -> None:
    """The bank was closed, which is proof; a month later nobody remembers having allowed it."""
    plan = approving(provider, approval_expires=HOUR, key_lifetime=400 * 24 * HOUR)
    asks(desk, plan)
    says(desk, ADA, "approve")
    provider.will_raise(NotApplied("closed"))
    with pytest.raises(StepFailed):
        desk.resume(plan)
    desk.clock.move(30 * 24 * HOUR)
    asks(desk, plan, "has expired")
    assert len(provider.calls) == 1
    says(desk, BOB, "approve")
    assert desk.resume(plan) == "receipt-1"


def test_it_expires_while_a_retry_waits(desk: Desk, provider: Provider) -> None:
    patient = Retry(on=NotApplied, attempts=3, first_wait=2 * HOUR, longest_wait=2 * HOUR)
    plan = approving(provider, approval_expires=HOUR, key_lifetime=400 * 24 * HOUR, retry=patient)
    asks(desk, plan)
    says(desk, ADA, "approve")
    provider.will_raise(NotApplied("closed"))
    with pytest.raises(ApprovalNeeded, match="has expired"):
        desk.resume(plan)
    assert len(provider.calls) == 1


def test_a_person_who_says_that_it_did_not_happen_closes_it_too(desk: Desk, provider: Provider) -> None:
    plan = approving(provider, approval_expires=HOUR)
    asks(desk, plan)
    says(desk, ADA, "approve")
    desk.dies(plan, "INV-7", at="send", phase="before")
    desk.clock.move(2 * HOUR)
    with pytest.raises(OutcomeUnknown):
        desk.resume(plan)
    says(desk, BOB, "not-applied")
    asks(desk, plan, "has expired")
    assert provider.calls == []


def failing_step() -> Any:
    @step(approve="before", approval_expires=HOUR)
    def fails() -> None:
        raise ValueError("no")

    @task
    def failing(item: str) -> None:
        fails()

    return failing


def test_a_step_that_failed_needs_an_approval_that_still_holds(desk: Desk) -> None:
    plan = failing_step()
    asks(desk, plan, "fails is to be started")
    says(desk, ADA, "approve")
    for _ in range(2):
        with pytest.raises(StepFailed):
            desk.resume(plan)
    desk.clock.move(2 * HOUR)
    asks(desk, plan, "has expired")


def test_a_review_of_a_step_that_is_redone_holds_no_longer_than_it_was_given_for(desk: Desk, tmp_path: Path) -> None:
    orders = tmp_path / "orders.csv"
    orders.write_text("1\n")

    @step(review="after", approval_expires=HOUR)
    def count(path: Path) -> int:
        return len(path.read_text().splitlines())

    @task
    def counting(item: str) -> int:
        return count(orders)

    asks(desk, counting, "count passed")
    says(desk, ADA, "approve")
    desk.dies_at_its_end(counting, "INV-7")
    desk.clock.move(2 * HOUR)
    orders.write_text("2\n")
    with pytest.raises(SourceChanged):
        desk.resume(counting)
    says(desk, BOB, "redo")
    asks(desk, counting, "has expired")
