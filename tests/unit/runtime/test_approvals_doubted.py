"""The doubt about what people approved: whoever may approve it says what became of it, and nobody else."""

from __future__ import annotations

from typing import Any

import pytest
from desk import Desk
from people import ADA, BOB, EVE, says
from posting import posting
from provider import Provider

from milepost import NotApplied, Retry
from milepost.errors import AnswerRefused, ApprovalNeeded, AttemptsUsed, OutcomeUnknown
from milepost.records.times import format_time
from milepost.runtime.answering import ask_to_cancel


@pytest.fixture
def provider(desk: Desk) -> Provider:
    return Provider(desk.clock, honours_keys=True)


def in_doubt(desk: Desk, provider: Provider, **options: Any) -> Any:
    """Approve a payment whose process dies in its send, and let nobody know what became of it."""
    plan = posting(provider, approve="before", approvers=("finance",), **options)
    with pytest.raises(ApprovalNeeded):
        desk.run(plan, "INV-7")
    says(desk, ADA, "approve")
    desk.dies(plan, "INV-7", at="send")
    return plan


def test_the_doubt_about_an_approved_effect_is_for_those_who_may_approve_it(desk: Desk, provider: Provider) -> None:
    """`not-applied` sends it once more: who may not allow the payment may not do so by another door."""
    plan = in_doubt(desk, provider)
    with pytest.raises(OutcomeUnknown, match=r"May answer: finance\."):
        desk.resume(plan)
    with pytest.raises(AnswerRefused, match="finance may answer, eve@elsewhere"):
        says(desk, EVE, "not-applied")
    says(desk, BOB, "not-applied")
    assert desk.resume(plan) == "receipt-1"


def test_it_is_for_them_also_when_the_option_is_gone_or_the_run_is_cancelled(desk: Desk, provider: Provider) -> None:
    in_doubt(desk, provider)
    ask_to_cancel(desk.store, "r", seal_key=None, by="ada", at=format_time(desk.clock.now()))
    with pytest.raises(OutcomeUnknown, match="The run is cancelled"):
        desk.resume(posting(provider))
    assert desk.asked().about["approvers"] == ["finance"]


def test_whether_it_is_tried_again_is_for_them_too(desk: Desk, provider: Provider) -> None:
    limited = Retry(on=NotApplied, attempts=1)
    plan = posting(provider, approve="before", approvers=("finance",), rejected=ValueError, retry=limited)
    with pytest.raises(ApprovalNeeded):
        desk.run(plan, "INV-7")
    says(desk, ADA, "approve")
    provider.will_raise(NotApplied("closed"))
    with pytest.raises(AttemptsUsed):
        desk.resume(plan)
    with pytest.raises(AnswerRefused, match="finance may answer"):
        says(desk, EVE, "again")
    says(desk, BOB, "again")
    assert desk.resume(plan) == "receipt-1"


def test_who_went_on_with_the_run_as_its_agent_does_not_settle_its_doubt(desk: Desk, provider: Provider) -> None:
    plan = in_doubt(desk, provider)
    with pytest.raises(OutcomeUnknown):
        desk.resume(plan, environ={"MILEPOST_AGENT": "bob@office"})
    with pytest.raises(AnswerRefused, match="runs the task"):
        says(desk, BOB, "not-applied")
