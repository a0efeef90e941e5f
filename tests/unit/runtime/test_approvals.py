"""Approval before an effect: what is asked, what allows it, what voids it, and that nothing is sent meanwhile."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from desk import Desk
from people import ADA, BOB, EVE, says
from posting import posting
from provider import Provider, RateLimited

from milepost import Declined, Key, Retry, effect, task
from milepost.errors import AlreadyAnswered, AnswerRefused, ApprovalNeeded, OutcomeUnknown, RequestChanged
from milepost.records.identity import Identity

HOLDS = timedelta(hours=24)


@pytest.fixture
def provider(desk: Desk) -> Provider:
    return Provider(desk.clock, honours_keys=True)


def approving(provider: Provider, **options: Any) -> Any:
    return posting(provider, approve="before", summary="Post invoice {invoice} over {amount} EUR", **options)


def by_model(provider: Provider, model: str) -> Any:
    """Return a task that posts by this model what its provider can look up."""

    @effect(provider="accounting", approve="before", lookup=lambda key: provider.find(key), settle=timedelta(0))
    def post_it(key: Key) -> str:
        return provider.apply(key, "it")

    @task(model=model)
    def posting_it() -> str:
        return post_it()

    return posting_it


def asks(desk: Desk, plan: Any, match: str = "INV-7") -> None:
    with pytest.raises(ApprovalNeeded, match=match):
        desk.run(plan, "INV-7")


def test_nothing_is_sent_before_it_is_approved(desk: Desk, provider: Provider) -> None:
    """The question says in one sentence what will happen, and shows the exact request."""
    plan = approving(provider)
    asks(desk, plan, "Post invoice INV-7 over 10 EUR")
    assert (provider.calls, desk.records("intent_recorded")) == ([], [])
    evidence = desk.evidence()
    assert evidence["request"] == {"arguments": {"amount": 10, "invoice": "INV-7"}}
    assert (evidence["provider"], evidence["key"][:4]) == ("accounting", "mp1-")
    assert set(evidence["binding"]) == {"approval", "inputs", "kept", "path", "request", "run", "sources", "versions"}
    assert [choice.name for choice in desk.asked().choices] == ["approve", "edit", "decline"]


def test_an_approved_effect_is_sent_once_and_names_the_answer(desk: Desk, provider: Provider) -> None:
    plan = approving(provider)
    asks(desk, plan)
    question = desk.question.question_id
    says(desk, ADA, "approve")
    assert desk.resume(plan) == "receipt-1"
    (intent,) = desk.records("intent_recorded")
    assert intent.answer == question
    assert desk.resume(plan) == "receipt-1"
    assert len(provider.calls) == 1


def test_an_approval_that_is_open_keeps_the_run_still(desk: Desk, provider: Provider) -> None:
    plan = approving(provider)
    asks(desk, plan)
    asks(desk, plan)
    assert len(desk.questions) == 1
    assert provider.calls == []


def test_declined_is_told_to_the_plan_the_same_on_each_resume(desk: Desk, provider: Provider) -> None:
    plan = approving(provider)
    asks(desk, plan)
    says(desk, ADA, "decline")
    for _ in range(2):
        with pytest.raises(Declined, match="ada@office: looked into it"):
            desk.resume(plan)
    assert (provider.calls, desk.questions) == ([], [])


def test_a_plan_that_catches_a_decline_goes_on_without_it(desk: Desk, provider: Provider) -> None:
    """What was done after it stays done when the plan is replayed: the declined call has its place in the line."""

    @effect(key=lambda item: item, approve="before", provider="shop")
    def order(key: Key, item: str) -> str:
        return provider.apply(key, item)

    @task
    def shopping() -> list[str]:
        done = []
        for item in ("tea", "gold", "salt"):
            try:
                done.append(order(item))
            except Declined as error:
                done.append(f"no {item}: {error.by}")
        return done

    for choice in ("approve", "decline", "approve"):
        with pytest.raises(ApprovalNeeded):
            desk.run(shopping)
        says(desk, ADA, choice)
    desk.dies_at_its_end(shopping)
    assert desk.run(shopping) == ["receipt-1", "no gold: ada@office", "receipt-2"]
    assert len(provider.calls) == 2


def test_another_request_voids_the_approval_and_says_what_changed(desk: Desk, provider: Provider) -> None:
    amount = [10]
    plan = approving(provider, amount=lambda: amount[0])
    asks(desk, plan)
    says(desk, ADA, "approve")
    amount[0] = 12
    with pytest.raises(ApprovalNeeded, match=r"Asked anew: the approval by ada@office is void, .*amount: 10 → 12"):
        desk.resume(plan)
    assert provider.calls == []
    says(desk, ADA, "approve")
    assert desk.resume(plan) == "receipt-1"
    assert provider.ledger[0][1] == ["INV-7", 12]


def test_a_decline_is_about_one_request(desk: Desk, provider: Provider) -> None:
    """The plan was changed to what people would allow: they are asked again."""
    amount = [10]
    plan = approving(provider, amount=lambda: amount[0])
    asks(desk, plan)
    says(desk, ADA, "decline")
    amount[0] = 1
    with pytest.raises(ApprovalNeeded, match=r"ada@office declined another one, .*10 → 1"):
        desk.resume(plan)


def test_other_versions_void_the_approval(desk: Desk, provider: Provider) -> None:
    with pytest.raises(ApprovalNeeded):
        desk.run(by_model(provider, "small"))
    says(desk, ADA, "approve")
    with pytest.raises(ApprovalNeeded, match=r'versions.model: "small" → "large"'):
        desk.resume(by_model(provider, "large"))
    assert provider.calls == []


def test_an_approval_expires_before_it_is_used(desk: Desk, provider: Provider) -> None:
    plan = approving(provider, approval_expires=HOLDS)
    asks(desk, plan)
    says(desk, ADA, "approve")
    desk.clock.move(HOLDS + timedelta(seconds=1))
    with pytest.raises(ApprovalNeeded, match="has expired"):
        desk.resume(plan)
    says(desk, ADA, "approve")
    desk.clock.move(HOLDS)
    assert desk.resume(plan) == "receipt-1"


def test_an_approval_from_a_clock_a_little_ahead_holds(desk: Desk, provider: Provider) -> None:
    """Whoever answered sits at another machine; clocks differ by seconds."""
    plan = approving(provider, approval_expires=HOLDS)
    asks(desk, plan)
    says(desk, ADA, "approve")
    desk.clock.move(timedelta(minutes=-1))
    assert desk.resume(plan) == "receipt-1"


def test_an_approval_whose_age_cannot_be_told_has_expired(desk: Desk, provider: Provider) -> None:
    """A clock that was set back: nobody knows how old the approval is."""
    plan = approving(provider, approval_expires=HOLDS)
    asks(desk, plan)
    says(desk, ADA, "approve")
    desk.clock.move(timedelta(hours=-1))
    with pytest.raises(ApprovalNeeded, match="has expired"):
        desk.resume(plan)


@pytest.mark.parametrize("at", ["append:answer_entered", "append:intent_recorded"])
@pytest.mark.parametrize("phase", ["before", "durable"])
def test_a_death_between_approval_and_send_does_not_ask_again(
    desk: Desk, provider: Provider, at: str, phase: str
) -> None:
    plan = approving(provider, lookup=True, settle=timedelta(0))
    asks(desk, plan)
    says(desk, ADA, "approve")
    desk.dies(plan, "INV-7", at=at, phase=phase)
    assert desk.resume(plan) == "receipt-1"
    assert len(provider.calls) == 1


def test_an_approval_covers_every_send_of_its_request(desk: Desk, provider: Provider) -> None:
    """Rate limited, then the process dies in the next send: no approval is asked for again, also after its expiry."""
    limited = Retry(on=RateLimited, attempts=5, first_wait=timedelta(minutes=1))
    plan = approving(
        provider, retry=limited, rejected=RateLimited, key_lifetime=timedelta(days=30), approval_expires=HOLDS
    )
    asks(desk, plan)
    says(desk, ADA, "approve")
    provider.will_raise(RateLimited())
    desk.dies(plan, "INV-7", at="send", nth=2, phase="durable")
    desk.clock.move(HOLDS * 2)
    assert desk.resume(plan) == "receipt-1"
    assert {intent.answer for intent in desk.records("intent_recorded")} == {
        desk.records("question_asked")[0].question_id
    }
    assert len(desk.records("intent_recorded")) == 3


def test_what_arrived_needs_no_approval_any_more(desk: Desk, provider: Provider) -> None:
    """The model changed after the send, which voids the approval; but the provider has it: nobody is asked."""
    with pytest.raises(ApprovalNeeded):
        desk.run(by_model(provider, "small"))
    says(desk, ADA, "approve")
    desk.dies(by_model(provider, "small"), at="send")
    assert desk.resume(by_model(provider, "large")) == "receipt-1"
    assert len(provider.calls) == 1


def test_a_send_again_needs_an_approval_that_is_not_void(desk: Desk, provider: Provider) -> None:
    """The same, but it never arrived: it is not sent under an approval of other versions."""
    with pytest.raises(ApprovalNeeded):
        desk.run(by_model(provider, "small"))
    says(desk, ADA, "approve")
    desk.dies(by_model(provider, "small"), at="append:intent_recorded")
    with pytest.raises(ApprovalNeeded, match=r"versions.model"):
        desk.resume(by_model(provider, "large"))
    assert provider.calls == []


def test_an_answer_to_a_changed_request_is_named_by_the_intent(desk: Desk, provider: Provider) -> None:
    """`send the new one` is an approval, too: the intent says whose."""
    amount = [10]
    plan = posting(provider, amount=lambda: amount[0])
    desk.dies_at_its_end(plan, "INV-7")
    amount[0] = 12
    with pytest.raises(RequestChanged):
        desk.resume(plan)
    question = desk.question.question_id
    desk.answer("send")
    desk.resume(plan)
    assert [intent.answer for intent in desk.records("intent_recorded")] == [None, question]


# ── several people ──────────────────────────────────────────────────────────────────────────────────


def test_as_many_must_approve_as_are_needed(desk: Desk, provider: Provider) -> None:
    plan = approving(provider, approvals=2)
    asks(desk, plan)
    says(desk, ADA, "approve")
    asks(desk, plan)
    with pytest.raises(AnswerRefused, match="somebody else must answer"):
        says(desk, ADA, "approve")
    says(desk, BOB, "approve")
    assert desk.resume(plan) == "receipt-1"
    assert [answer.by for answer in desk.records("answer_entered")] == ["ada@office", "bob@office"]


def test_people_who_approve_at_the_same_moment_each_get_a_place(desk: Desk, provider: Provider) -> None:
    """Eight at once where five must: five stand, in five places, and three are told that it is decided."""
    plan = approving(provider, approvals=5)
    asks(desk, plan)
    question, ready = desk.question, threading.Barrier(8)

    def approve(number: int) -> str:
        ready.wait()
        try:
            return f"place {says(desk, Identity(f'p{number}@office'), 'approve', of=question).place}"
        except AlreadyAnswered:
            return "late"

    with ThreadPoolExecutor(8) as people:
        told = sorted(people.map(approve, range(8)))
    assert told == ["late"] * 3 + [f"place {number}" for number in range(1, 6)]
    assert sorted(a.place for a in desk.store.answers("r")) == [0, 0, 0, 1, 2, 3, 4, 5]
    assert desk.resume(plan) == "receipt-1"


def test_one_person_on_two_machines_or_at_two_doors_is_one(desk: Desk, provider: Provider) -> None:
    plan = approving(provider, approvals=2)
    asks(desk, plan)
    says(desk, ADA, "approve")
    for name in ("ada@elsewhere", "Ada@office.example"):
        with pytest.raises(AnswerRefused, match="somebody else must answer"):
            says(desk, Identity(name, door="console"), "approve")


def test_one_decline_settles_it(desk: Desk, provider: Provider) -> None:
    plan = approving(provider, approvals=3)
    asks(desk, plan)
    says(desk, ADA, "approve")
    says(desk, BOB, "decline")
    question = desk.question
    with pytest.raises(AlreadyAnswered, match="bob@office"):
        says(desk, EVE, "approve", of=question)
    with pytest.raises(Declined, match="bob@office"):
        desk.resume(plan)
    assert [(a.by, a.place) for a in desk.store.answers("r")] == [
        ("ada@office", 1),
        ("bob@office", 2),
        ("eve@elsewhere", 0),
    ]


def test_the_oldest_of_several_approvals_expires_first(desk: Desk, provider: Provider) -> None:
    plan = approving(provider, approvals=2, approval_expires=HOLDS)
    asks(desk, plan)
    says(desk, ADA, "approve")
    desk.clock.move(HOLDS / 2)
    says(desk, BOB, "approve")
    desk.clock.move(HOLDS / 2 + timedelta(seconds=1))
    with pytest.raises(ApprovalNeeded, match=r"ada@office and bob@office at .* has expired"):
        desk.resume(plan)


def test_only_those_named_may_answer(desk: Desk, provider: Provider) -> None:
    """By name, by the user's part of it, or by a group; the answer says as what they did."""
    plan = approving(provider, approvers=("finance", "carol"))
    asks(desk, plan)
    with pytest.raises(AnswerRefused, match=r"finance, carol may answer, eve@elsewhere \(groups: guests\) may not"):
        says(desk, EVE, "approve")
    says(desk, Identity("carol@anywhere"), "approve")
    desk.resume(plan)
    (entered,) = desk.records("answer_entered")
    assert (entered.by, entered.role, entered.door) == ("carol@anywhere", "carol", "cli")


def test_the_agent_does_not_allow_what_it_asks(desk: Desk, provider: Provider) -> None:
    plan = approving(provider).options(environ={"MILEPOST_AGENT": "ada@office"})
    with pytest.raises(ApprovalNeeded):
        plan.options(**desk.options()).run("r", "INV-7")
    with pytest.raises(AnswerRefused, match="ada@office runs the task"):
        says(desk, ADA, "approve")
    says(desk, BOB, "approve")
    assert desk.resume(approving(provider)) == "receipt-1"


def test_the_agent_answers_no_other_question_either(desk: Desk, provider: Provider) -> None:
    """That it happened, said by whoever should have done it, is no evidence."""
    plan = posting(provider).options(environ={"MILEPOST_AGENT": "ada@office"})
    desk.dies(plan, "INV-7", at="send")
    with pytest.raises(OutcomeUnknown):
        desk.resume(plan)
    with pytest.raises(AnswerRefused, match="ada@office runs the task"):
        says(desk, ADA, "not-applied")
    says(desk, BOB, "not-applied")


# ── edits ───────────────────────────────────────────────────────────────────────────────────────────


def test_an_edited_request_is_what_is_sent(desk: Desk, provider: Provider) -> None:
    """Recorded with who edited it; the plan goes on making its own request, and is not asked about it again."""
    plan = approving(provider)
    asks(desk, plan)
    says(desk, ADA, "edit", request={"invoice": "INV-7", "amount": 9})
    desk.dies_at_its_end(plan, "INV-7")
    assert provider.ledger[0][1] == ["INV-7", 9]
    assert desk.resume(plan) == "receipt-1"
    assert len(provider.calls) == 1
    (entered,) = desk.records("answer_entered")
    assert (entered.choice, entered.request.size) == ("edit", len(b'{"amount":9,"invoice":"INV-7"}'))


def test_an_edit_that_does_not_fit_is_asked_about(desk: Desk, provider: Provider) -> None:
    plan = approving(provider)
    asks(desk, plan)
    says(desk, ADA, "edit", request={"invoice": 7, "amount": 9})
    with pytest.raises(ApprovalNeeded, match=r"the edit by ada@office cannot be used: .*invoice"):
        desk.resume(plan)
    assert provider.calls == []


def test_an_edit_may_not_make_it_another_call(desk: Desk, provider: Provider) -> None:
    plan = approving(provider, key=lambda invoice, amount: invoice)
    asks(desk, plan)
    says(desk, ADA, "edit", request={"invoice": "INV-8", "amount": 10})
    with pytest.raises(ApprovalNeeded, match="'INV-8' of it, it is about 'INV-7'"):
        desk.resume(plan)


def test_where_several_must_approve_they_approve_the_edited_request(desk: Desk, provider: Provider) -> None:
    plan = approving(provider, approvals=2)
    asks(desk, plan)
    says(desk, ADA, "edit", request={"invoice": "INV-7", "amount": 9})
    with pytest.raises(ApprovalNeeded, match=r"over 9 EUR.* ada@office edited it, .*amount: 10 → 9"):
        desk.resume(plan)
    assert desk.evidence()["edited_by"] == "ada@office"
    says(desk, ADA, "approve")
    says(desk, BOB, "approve")
    assert desk.resume(plan) == "receipt-1"
    assert provider.ledger[0][1] == ["INV-7", 9]


def test_an_edit_is_of_the_plans_request(desk: Desk, provider: Provider) -> None:
    """The plan asks for something else by now: nobody edited that."""
    amount = [10]
    plan = approving(provider, amount=lambda: amount[0])
    asks(desk, plan)
    says(desk, ADA, "edit", request={"invoice": "INV-7", "amount": 9})
    amount[0] = 20
    with pytest.raises(ApprovalNeeded, match=r"over 20 EUR.*10 → 20"):
        desk.resume(plan)


def test_the_choice_says_what_it_needs(desk: Desk, provider: Provider) -> None:
    asks(desk, approving(provider))
    with pytest.raises(AnswerRefused, match="needs --request"):
        says(desk, ADA, "edit")
    with pytest.raises(AnswerRefused, match="takes no request"):
        says(desk, ADA, "approve", request={})


def test_an_open_approval_of_what_happened_after_all_is_taken_back(desk: Desk, provider: Provider) -> None:
    """Somebody says that it was applied, in answer to another question: nobody waits for the approval any more."""
    plan = approving(provider)
    asks(desk, plan)
    says(desk, ADA, "approve")
    desk.dies(plan, "INV-7", at="send")
    with pytest.raises(OutcomeUnknown):
        desk.resume(plan)
    desk.answer("applied", ref="receipt-1", result="receipt-1")
    assert desk.resume(plan) == "receipt-1"
    assert desk.questions == []
