"""The option that asked is taken away: what people were asked about, and what they said, holds all the same."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from desk import Desk
from people import ADA, BOB, says
from posting import posting
from provider import Provider

from milepost import Declined, Key, effect, step, task
from milepost.errors import ApprovalNeeded

LIFETIME = timedelta(days=1)


@pytest.fixture
def provider(desk: Desk) -> Provider:
    return Provider(desk.clock, honours_keys=True)


def asks(desk: Desk, plan: Any, match: str = "post_invoice") -> None:
    with pytest.raises(ApprovalNeeded, match=match):
        desk.run(plan, "INV-7")


def test_what_was_declined_is_not_sent_without_the_option(desk: Desk, provider: Provider) -> None:
    asks(desk, posting(provider, approve="before"))
    says(desk, ADA, "decline")
    for _ in range(2):
        with pytest.raises(Declined, match="declined by ada@office"):
            desk.resume(posting(provider))
    assert provider.calls == []


def test_another_request_is_asked_about_by_the_rule_that_was_declined_under(desk: Desk, provider: Provider) -> None:
    asks(desk, posting(provider, approve="before", approvers=("finance",), approvals=2))
    says(desk, ADA, "decline")
    asks(desk, posting(provider, amount=lambda: 11), "ada@office declined another one")
    assert desk.asked().about["approvers"] == ["finance"]
    says(desk, ADA, "approve")
    says(desk, BOB, "approve")
    assert desk.resume(posting(provider, amount=lambda: 11)) == "receipt-1"


def test_an_approval_stays_one_of_this_request_only(desk: Desk, provider: Provider) -> None:
    """Also its expiry holds: what was allowed for an hour was not allowed for ever."""
    asks(desk, posting(provider, approve="before", approval_expires=timedelta(hours=1)))
    says(desk, ADA, "approve")
    asks(desk, posting(provider, amount=lambda: 11), "is void")
    says(desk, ADA, "approve")
    desk.clock.move(timedelta(hours=2))
    asks(desk, posting(provider, amount=lambda: 11), "has expired")
    says(desk, ADA, "approve")
    assert desk.resume(posting(provider, amount=lambda: 11)) == "receipt-1"


def test_what_was_declined_is_asked_about_where_it_was_moved_to(desk: Desk, provider: Provider) -> None:
    """The same effect of the same item in another body is what somebody said no to."""

    def plan(**options: Any) -> Any:
        @effect(key=lambda item: item, key_lifetime=LIFETIME, **options)
        def pay(key: Key, item: str) -> Any:
            return provider.apply(key, item)

        @step
        def paying(item: str) -> Any:
            return pay(item)

        @task
        def month(item: str) -> Any:
            return pay(item) if options else paying(item)

        return month

    asks(desk, plan(approve="before"), "pay")
    says(desk, ADA, "decline")
    asks(desk, plan(), r"ada@office declined it as pay\[INV-7\]")
    assert provider.calls == []


def drafting(ran: list[str], **options: Any) -> Any:
    @step(**options)
    def draft(topic: str) -> str:
        ran.append(topic)
        return topic

    @task
    def writing(topic: str) -> str:
        return draft(topic)

    return writing


def test_a_step_that_was_declined_does_not_start(desk: Desk) -> None:
    ran: list[str] = []
    asks(desk, drafting(ran, approve="before"), "draft")
    says(desk, ADA, "decline")
    with pytest.raises(Declined):
        desk.resume(drafting(ran))
    assert ran == []


@pytest.mark.parametrize("choice", ["decline", "approve", "redo"])
def test_a_review_is_heard_without_the_option(desk: Desk, choice: str) -> None:
    ran: list[str] = []
    asks(desk, drafting(ran, review="after"), "draft")
    says(desk, ADA, choice)
    if choice == "approve":
        assert desk.resume(drafting(ran)) == "INV-7"
        return
    with pytest.raises(Declined if choice == "decline" else ApprovalNeeded):
        desk.resume(drafting(ran))
    assert desk.records("step_verified") == []
