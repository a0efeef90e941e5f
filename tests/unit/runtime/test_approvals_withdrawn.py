"""The option that asked is taken away: what people were asked about, and what they said, holds all the same."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from desk import Desk
from people import ADA, BOB, says
from posting import posting
from provider import Provider

from milepost import Declined, Key, effect, step, task
from milepost.errors import ApprovalNeeded, PlanChanged
from milepost.runtime.answering import asked
from milepost.runtime.fork import fork_run

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
    with pytest.raises(PlanChanged, match=r"where pay\[INV-7\] was declined before"):
        desk.resume(plan())
    says(desk, ADA, "accept")
    asks(desk, plan(), r"ada@office declined it as pay\[INV-7\]")
    assert provider.calls == []


def paying(provider: Provider, how: str = "", *, mapped: bool = False, **options: Any) -> Any:
    """A plan that pays two and goes on when it may not; `how` it was changed since."""

    @effect(name="pay2" if "renamed" in how else "pay", **_keyed(how), **options)
    def pay(key: Key, item: str) -> Any:
        return provider.apply(key, item)

    @effect(key=lambda item: item, key_lifetime=LIFETIME)
    def note(key: Key, item: str) -> str:
        return f"noted {item}"

    def one(item: str) -> Any:
        try:
            return pay(f"{item}x" if "other" in how else item)
        except Declined:
            return note(item)

    @task
    def month(item: str) -> Any:
        if "dropped" in how:
            return None
        return pay.map([item, f"{item}b"]) if mapped else one(item)

    return month


def _keyed(how: str) -> dict[str, Any]:
    key = {} if "keyless" in how else {"key": (lambda item: f"{item}!") if "rekeyed" in how else lambda item: item}
    return {**key, "key_lifetime": LIFETIME}


@pytest.mark.parametrize("how", ["renamed", "keyless", "rekeyed", "renamed and rekeyed"])
def test_what_was_declined_is_asked_about_under_another_name(desk: Desk, provider: Provider, how: str) -> None:
    """The same request is what somebody said no to, whatever the code calls it now, and by the same people."""
    asks(desk, paying(provider, approve="before", approvers=("finance",)), "pay")
    says(desk, ADA, "decline")
    changed = paying(provider, how)
    with pytest.raises(PlanChanged, match=r"where pay\[INV-7\] was declined before"):
        desk.resume(changed)
    says(desk, ADA, "accept")
    asks(desk, changed, r"ada@office declined it as pay\[INV-7\]")
    assert desk.asked().about["approvers"] == ["finance"]
    assert provider.calls == []
    says(desk, ADA, "approve")
    assert desk.resume(changed) == "receipt-1"


def test_declined_items_are_asked_about_under_another_name(desk: Desk, provider: Provider) -> None:
    asks(desk, paying(provider, approve="before", mapped=True), "pay")
    for question in desk.questions:
        says(desk, ADA, "decline", of=question)
    changed = paying(provider, "renamed", mapped=True)
    with pytest.raises(PlanChanged):
        desk.resume(changed)
    says(desk, ADA, "accept")
    asks(desk, changed, r"declined it as pay\[INV-7b?\]")
    assert [q.path for q in desk.questions] == ["pay2[INV-7]", "pay2[INV-7b]"]
    assert provider.calls == []


def test_a_declined_branch_is_asked_about_under_another_name(desk: Desk, provider: Provider) -> None:
    """Branches stand in no order: only the request tells that it is the same."""

    def plan(name: str, **options: Any) -> Any:
        @effect(name=name, key=lambda item: item, key_lifetime=LIFETIME, **options)
        async def pay(key: Key, item: str) -> Any:
            return provider.apply(key, item)

        @task
        async def month(item: str) -> list[Any]:
            async def one(item: str) -> Any:
                return await pay(item)

            return await asyncio.gather(one(item), one(f"{item}b"))

        return month

    def asked_by(plan: Any) -> list[str]:
        with pytest.raises(ApprovalNeeded):
            asyncio.run(desk.run(plan, "INV-7"))
        return [q.path for q in desk.questions]

    asked_by(plan("pay", approve="before"))
    for question in desk.questions:
        says(desk, ADA, "decline", of=question)
    assert sorted(asked_by(plan("pay2"))) == ["pay2[INV-7]", "pay2[INV-7b]"]
    assert provider.calls == []


@pytest.mark.parametrize("how", ["other", "dropped"])
def test_what_was_declined_and_is_not_called_again_is_heard_of(desk: Desk, provider: Provider, how: str) -> None:
    """As something finished would be: before another call in its place is sent, or at the end of the plan."""
    asks(desk, paying(provider, approve="before"), "pay")
    says(desk, ADA, "decline")
    changed = paying(provider, how)
    with pytest.raises(PlanChanged, match=r"pay\[INV-7\] was declined before"):
        desk.resume(changed)
    assert provider.calls == []
    says(desk, ADA, "accept")
    desk.resume(changed) if how == "dropped" else None


def test_a_plan_that_goes_on_after_a_decline_asks_nothing_more(desk: Desk, provider: Provider) -> None:
    """What it does instead may well be about the same thing: the declined call was reached first."""
    plan = paying(provider, approve="before")
    asks(desk, plan, "pay")
    says(desk, ADA, "decline")
    assert desk.resume(plan) == "noted INV-7"
    assert provider.calls == []


@pytest.mark.parametrize("how", ["", "renamed", "dropped"])
@pytest.mark.parametrize("runs", [["f1"], ["f1", "f2"]])
def test_a_fork_asks_anew_about_what_was_declined(desk: Desk, provider: Provider, runs: list[str], how: str) -> None:
    """Without the option, too: it is the way out of a decline for who may approve, not past them."""
    asks(desk, paying(provider, approve="before", approvers=("finance",)), "pay")
    says(desk, ADA, "decline")
    desk.resume(paying(provider, approve="before", approvers=("finance",)))
    old = "r"
    for new in runs:
        fork_run(desk.store, old, "note[INV-7]", new, seal_key=None, clock=desk.clock, environ={})
        old = new
    changed = paying(provider, how)
    if how == "dropped":
        with pytest.raises(PlanChanged, match=r"note\[INV-7\] and pay\[INV-7\]|pay\[INV-7\]"):
            desk.resume(changed, run_id=old)
        return
    if how == "renamed":
        with pytest.raises(PlanChanged, match=r"pay2\[INV-7\], which has no record, where note\[INV-7\] was finished"):
            desk.resume(changed, run_id=old)
        says(desk, ADA, "accept", of=desk.store.questions(old)[0])
    with pytest.raises(ApprovalNeeded, match=r"ada@office declined it as pay\[INV-7\] in run r"):
        desk.resume(changed, run_id=old)
    assert asked(desk.store.questions(old)[-1]).about["approvers"] == ["finance"]
    assert provider.calls == []


def test_a_task_that_is_one_declined_effect_is_forked_before_it(desk: Desk, provider: Provider) -> None:
    """The question is all there is of it, and the way out begins there."""
    plan = posting(provider, approve="before")
    asks(desk, plan)
    path = desk.question.path
    says(desk, ADA, "decline")
    with pytest.raises(Declined):
        desk.resume(plan)
    fork_run(desk.store, "r", path, "r2", seal_key=None, clock=desk.clock, environ={})
    with pytest.raises(ApprovalNeeded, match="in run r"):
        desk.resume(posting(provider), run_id="r2")
    says(desk, BOB, "approve", of=desk.store.questions("r2")[0])
    assert desk.resume(posting(provider), run_id="r2") == "receipt-1"


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
