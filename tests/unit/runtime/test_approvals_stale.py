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

from milepost import Key, Limits, Rate, effect, task
from milepost.errors import AnswerRefused, ApprovalNeeded, QuestionUnknown
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
