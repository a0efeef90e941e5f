"""The table of design §5: what happens to an intent whose outcome nobody recorded, row by row.

Each row twice: in the same process after an exception, and in the next process after a death.
"""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Any

import pytest
from branches import resume, start
from desk import Desk
from posting import SETTLE, posting
from provider import AnswerLost, Provider, Unreachable

from milepost import CannotTell, Found, Key, NotFound, Retry, RunWaiting, StepFailed, effect, step, task
from milepost.errors import AttemptsUsed, OutcomeUnknown

SENT, UNSENT = "durable", "before"
"""Where a process dies: after the provider accepted and before our record, or with the intent and nothing sent."""
ONCE_MORE = Retry(on=ConnectionError, attempts=3, first_wait=timedelta(seconds=1))


# ── a provider that can be looked up ────────────────────────────────────────────────────────────────


def test_a_lost_answer_is_found_by_lookup_and_not_sent_again(desk: Desk) -> None:
    """The commonest way to pay twice is to send again after a timeout."""
    provider = Provider(desk.clock)
    provider.will_lose_its_answer()
    assert desk.run(posting(provider, lookup=True, retry=ONCE_MORE), "INV-7") == "receipt-1"
    assert len(provider.ledger) == len(provider.calls) == 1
    (outcome,) = desk.records("outcome_recorded")[-1:]
    assert (outcome.outcome, outcome.recovered, outcome.ref) == ("applied", True, "receipt-1")


def test_a_call_that_never_arrived_is_sent_again_with_the_same_key(desk: Desk) -> None:
    """Not found, after the call can no longer arrive, means that it did not happen."""
    provider = Provider(desk.clock)
    provider.will_raise(Unreachable())
    assert desk.run(posting(provider, lookup=True, retry=ONCE_MORE), "INV-7") == "receipt-1"
    assert len(provider.ledger) == 1
    assert len(provider.calls) == 2
    assert len(set(provider.calls)) == 1
    assert [r.attempt for r in desk.records("intent_recorded")] == [1, 2]


def test_after_a_death_what_the_provider_has_is_recovered(desk: Desk) -> None:
    """Killed between the outside call and its record: the place where every engine calls twice."""
    provider = Provider(desk.clock)
    plan = posting(provider, lookup=True)
    desk.dies(plan, "INV-7", at="send", phase=SENT)
    assert desk.resume(plan) == "receipt-1"
    assert len(provider.ledger) == len(provider.calls) == 1


def test_after_a_death_what_the_provider_lacks_is_sent_with_the_same_key(desk: Desk) -> None:
    provider = Provider(desk.clock)
    plan = posting(provider, lookup=True)
    desk.dies(plan, "INV-7", at="send", phase=UNSENT)
    assert desk.resume(plan) == "receipt-1"
    first, second = desk.records("intent_recorded")
    assert first.key == second.key == provider.calls[0]
    assert len(provider.ledger) == 1


def test_after_a_death_the_lookup_is_believed_only_when_the_call_has_settled(desk: Desk) -> None:
    """The call can have arrived as late as its process lived; the resume is the first proof of its death."""
    provider = Provider(desk.clock, shows_after=timedelta(minutes=20))
    plan = posting(provider, lookup=True, settle=timedelta(minutes=20))
    desk.dies(plan, "INV-7", at="send", phase=SENT)
    desk.clock.move(timedelta(seconds=1))
    resumed_at = desk.clock.now()
    assert desk.resume(plan) == "receipt-1"
    assert provider.lookups[0][1] == resumed_at + timedelta(minutes=20)
    assert len(provider.ledger) == 1


def test_after_an_exception_settle_counts_from_when_it_was_recorded(desk: Desk) -> None:
    """A call that timed out after an hour was sent an hour ago but can have arrived a moment ago."""
    provider = Provider(desk.clock)

    def slow(provider: Provider, key: str, amount: int) -> str:
        desk.clock.move(timedelta(hours=1))
        provider.calls.append(key)
        raise AnswerLost

    plan = posting(provider, lookup=True, send=slow, retry=Retry(on=AnswerLost, attempts=1))
    started_at = desk.clock.now()
    with pytest.raises(AttemptsUsed):
        desk.run(plan, "INV-7")
    assert provider.lookups[0][1] == started_at + timedelta(hours=1) + SETTLE


def test_a_settle_of_zero_is_a_decision_and_nothing_is_waited_for(desk: Desk) -> None:
    provider = Provider(desk.clock)
    plan = posting(provider, lookup=True, settle=timedelta(0))
    desk.dies(plan, "INV-7", at="send", phase=SENT)
    assert desk.resume(plan) == "receipt-1"
    assert desk.clock.waits == []


def test_a_second_resume_waits_only_for_what_is_left(desk: Desk) -> None:
    """Settle is an absolute time: leaving while waiting neither resets nor shortens it."""
    provider = Provider(desk.clock)
    plan = posting(provider, lookup=True, settle=timedelta(minutes=10))
    desk.dies(plan, "INV-7", at="send", phase=SENT)
    resumed_at = desk.clock.now()
    with pytest.raises(RunWaiting):
        desk.resume(plan, wait=False)
    desk.clock.move(timedelta(minutes=4))
    assert desk.resume(plan) == "receipt-1"
    assert desk.clock.waits == [resumed_at + timedelta(minutes=10)]


def test_a_clock_set_back_makes_settle_count_from_now(desk: Desk) -> None:
    """An age that comes out negative is cannot tell; the whole of settle is waited for again."""
    provider = Provider(desk.clock)
    plan = posting(provider, lookup=True)
    desk.dies(plan, "INV-7", at="send", phase=SENT)
    with pytest.raises(RunWaiting):
        desk.resume(plan, wait=False)
    desk.clock.move(-timedelta(hours=1))
    now = desk.clock.now()
    assert desk.resume(plan) == "receipt-1"
    assert provider.lookups[0][1] == now + SETTLE


@pytest.mark.parametrize(
    "answer", [CannotTell("maintenance"), RuntimeError("no route"), None, True, "receipt-1", {"found": False}]
)
def test_a_lookup_that_cannot_tell_is_never_taken_for_not_found(desk: Desk, answer: object) -> None:
    """Whatever a lookup does other than answer, nobody guesses: a person is asked."""
    provider = Provider(desk.clock)
    plan = posting(provider, lookup=True)
    desk.dies(plan, "INV-7", at="send", phase=SENT)
    provider.will_answer_lookups(*[answer] * 5)
    with pytest.raises(OutcomeUnknown):
        desk.resume(plan)
    assert len(provider.calls) == 1


def test_a_lookup_that_cannot_tell_is_asked_again_by_the_retry_policy(desk: Desk) -> None:
    """Cannot tell may be a passing trouble of the lookup: its effect's policy says how often to try."""
    provider = Provider(desk.clock)
    plan = posting(provider, lookup=True, retry=ONCE_MORE)
    desk.dies(plan, "INV-7", at="send", phase=SENT)
    provider.will_answer_lookups(CannotTell("busy"), CannotTell("busy"))
    assert desk.resume(plan) == "receipt-1"
    assert len(provider.lookups) == 3
    times = [at for _, at in provider.lookups]
    assert times[1] - times[0] == timedelta(seconds=1)
    assert times[2] - times[1] == timedelta(seconds=2)


def test_a_lookup_that_never_can_tell_ends_in_a_question_after_the_policy(desk: Desk) -> None:
    provider = Provider(desk.clock)
    plan = posting(provider, lookup=True, retry=ONCE_MORE)
    desk.dies(plan, "INV-7", at="send", phase=SENT)
    provider.will_answer_lookups(*[CannotTell("busy")] * 20)
    with pytest.raises(OutcomeUnknown, match="the lookup cannot tell: busy"):
        desk.resume(plan)
    assert len(provider.lookups) == ONCE_MORE.attempts


def test_lookups_that_cannot_tell_are_counted_across_processes(desk: Desk) -> None:
    """With --no-wait each process leaves at the first wait; the policy must come to its end all the same."""
    provider = Provider(desk.clock)
    plan = posting(provider, lookup=True, settle=timedelta(0), retry=ONCE_MORE)
    desk.dies(plan, "INV-7", at="send", phase=SENT)
    provider.will_answer_lookups(*[CannotTell("busy")] * 20)
    for _ in range(ONCE_MORE.attempts - 1):
        with pytest.raises(RunWaiting):
            desk.resume(plan, wait=False)
        desk.clock.move(timedelta(minutes=1))
    with pytest.raises(OutcomeUnknown):
        desk.resume(plan, wait=False)
    assert len(provider.lookups) == ONCE_MORE.attempts


# ── a provider that keeps keys ──────────────────────────────────────────────────────────────────────

DAY = timedelta(hours=24)


def test_within_the_key_lifetime_the_recorded_request_is_sent_with_the_same_key(desk: Desk) -> None:
    """The provider itself sees that it knows this key: sending again is safe and brings the answer."""
    provider = Provider(desk.clock, honours_keys=True, keeps_keys_for=DAY)
    provider.will_lose_its_answer()
    assert desk.run(posting(provider, key_lifetime=DAY, retry=ONCE_MORE), "INV-7") == "receipt-1"
    assert len(provider.calls) == 2
    assert len(provider.ledger) == 1


@pytest.mark.parametrize("phase", [SENT, UNSENT])
def test_after_a_death_within_the_key_lifetime_it_is_sent_again(desk: Desk, phase: str) -> None:
    provider = Provider(desk.clock, honours_keys=True, keeps_keys_for=DAY)
    plan = posting(provider, key_lifetime=DAY)
    desk.dies(plan, "INV-7", at="send", phase=phase)
    desk.clock.move(DAY - timedelta(minutes=6))
    assert desk.resume(plan) == "receipt-1"
    assert len(provider.ledger) == 1


def test_five_minutes_before_the_end_of_the_key_lifetime_a_person_is_asked(desk: Desk) -> None:
    """The provider counts from when it accepted, on its own clock: the last minutes are not trusted."""
    provider = Provider(desk.clock, honours_keys=True, keeps_keys_for=DAY)
    plan = posting(provider, key_lifetime=DAY)
    desk.dies(plan, "INV-7", at="send", phase=SENT)
    desk.clock.move(DAY - timedelta(minutes=5))
    with pytest.raises(OutcomeUnknown, match="key lifetime"):
        desk.resume(plan)
    assert len(provider.calls) == 1


def test_the_key_lifetime_counts_from_the_first_send(desk: Desk) -> None:
    """A later send does not renew a key at the provider."""
    provider = Provider(desk.clock, honours_keys=True, keeps_keys_for=DAY)
    plan = posting(provider, key_lifetime=DAY)
    desk.dies(plan, "INV-7", at="send", phase=SENT)
    desk.clock.move(timedelta(hours=20))
    desk.dies(plan, "INV-7", at="send", phase=SENT)
    desk.clock.move(timedelta(hours=20))
    with pytest.raises(OutcomeUnknown):
        desk.resume(plan)
    assert len(provider.ledger) == 1


def test_after_the_key_lifetime_the_lookup_decides(desk: Desk) -> None:
    provider = Provider(desk.clock, honours_keys=True, keeps_keys_for=DAY)
    plan = posting(provider, key_lifetime=DAY, lookup=True)
    desk.dies(plan, "INV-7", at="send", phase=SENT)
    desk.clock.move(3 * DAY)
    assert desk.resume(plan) == "receipt-1"
    assert len(provider.calls) == 1


def test_within_the_key_lifetime_a_lookup_that_cannot_tell_need_not_be_asked_about(desk: Desk) -> None:
    provider = Provider(desk.clock, honours_keys=True, keeps_keys_for=DAY)
    plan = posting(provider, key_lifetime=DAY, lookup=True)
    desk.dies(plan, "INV-7", at="send", phase=SENT)
    provider.will_answer_lookups(*[CannotTell("busy")] * 5)
    assert desk.resume(plan) == "receipt-1"
    assert len(provider.ledger) == 1


def test_a_clock_set_back_makes_the_age_of_a_key_unknown(desk: Desk) -> None:
    provider = Provider(desk.clock, honours_keys=True, keeps_keys_for=DAY)
    plan = posting(provider, key_lifetime=DAY)
    desk.dies(plan, "INV-7", at="send", phase=SENT)
    desk.clock.move(-timedelta(hours=1))
    with pytest.raises(OutcomeUnknown, match=r"cannot be told; it has no lookup\."):
        desk.resume(plan)
    assert len(provider.calls) == 1


# ── neither ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("phase", [SENT, UNSENT])
def test_with_neither_a_death_ends_in_a_question_at_once(desk: Desk, phase: str) -> None:
    """Whether it was sent makes no difference: nobody can know."""
    provider = Provider(desk.clock)
    plan = posting(provider)
    desk.dies(plan, "INV-7", at="send", phase=phase)
    sent = len(provider.calls)
    with pytest.raises(OutcomeUnknown, match="neither a lookup nor a known key lifetime"):
        desk.resume(plan)
    assert len(provider.calls) == sent
    assert desk.status() == "asking"


def test_with_neither_a_lost_answer_ends_in_a_question_whatever_the_policy_says(desk: Desk) -> None:
    """Retry says whether to try again, never that nothing happened."""
    provider = Provider(desk.clock)
    provider.will_lose_its_answer()
    with pytest.raises(OutcomeUnknown):
        desk.run(posting(provider, retry=ONCE_MORE), "INV-7")
    assert len(provider.calls) == 1


def test_without_a_policy_a_lost_answer_fails_the_run_and_the_next_resume_looks_it_up(desk: Desk) -> None:
    """The user sees the own exception at once; nothing is lost, the intent stays open."""
    provider = Provider(desk.clock)
    plan = posting(provider, lookup=True)
    provider.will_lose_its_answer()
    with pytest.raises(StepFailed) as failed:
        desk.run(plan, "INV-7")
    assert isinstance(failed.value.__cause__, AnswerLost)
    assert desk.status() == "failed"
    assert desk.resume(plan) == "receipt-1"
    assert len(provider.calls) == 1


def test_the_evidence_names_key_sends_and_request(desk: Desk) -> None:
    """Whoever must decide has to be able to look it up at the provider by hand."""
    provider = Provider(desk.clock)
    plan = posting(provider)
    desk.dies(plan, "INV-7", at="send", phase=SENT)
    with pytest.raises(OutcomeUnknown):
        desk.resume(plan)
    evidence = desk.evidence()
    assert evidence["key"] == provider.calls[0]
    assert evidence["provider"] == "accounting"
    assert evidence["request"] == {"arguments": {"invoice": "INV-7", "amount": 10}}
    assert [send["attempt"] for send in evidence["sends"]] == [1]


# ── what makes an open intent another one ───────────────────────────────────────────────────────────


def test_another_request_while_open_is_asked_about_with_a_diff(desk: Desk) -> None:
    """Sending another request under the key of an open one could do both, or the wrong one."""
    provider = Provider(desk.clock, honours_keys=True)
    amounts = iter([10, 12])
    plan = posting(provider, key_lifetime=DAY, amount=lambda: next(amounts))
    desk.dies(plan, "INV-7", at="send", phase=SENT)
    with pytest.raises(OutcomeUnknown, match="another call"):
        desk.resume(plan)
    assert any("amount" in change for change in desk.evidence()["changes"])
    assert len(provider.calls) == 1


def test_changed_code_while_open_is_asked_about(desk: Desk) -> None:
    """The recorded request sent by other code may be another call."""
    provider = Provider(desk.clock, honours_keys=True)
    desk.dies(posting(provider, key_lifetime=DAY, version="1"), "INV-7", at="send", phase=SENT)
    with pytest.raises(OutcomeUnknown, match="code of the effect"):
        desk.resume(posting(provider, key_lifetime=DAY, version="2"))
    assert len(provider.calls) == 1


def test_a_plan_that_no_longer_reaches_an_open_intent_asks_at_its_end(desk: Desk) -> None:
    """A run is not finished while nobody knows whether it wrote to the world."""
    provider = Provider(desk.clock)
    reaches = iter([True, False, False, False])

    @effect(provider="accounting")
    def post_forgotten(key: Key) -> str:
        return provider.apply(key, "x")

    @task
    def forgets() -> str:
        return post_forgotten() if next(reaches) else "done without"

    desk.dies(forgets, at="send", phase=SENT)
    with pytest.raises(OutcomeUnknown, match="nobody knows"):
        desk.resume(forgets)
    desk.answer("not-applied")
    assert desk.resume(forgets) == "done without"


def test_a_plan_that_no_longer_reaches_what_the_provider_has_closes_it_before_anything_runs(desk: Desk) -> None:
    """Rule 3 comes before the plan: found closes the intent, and the plan's change is then a question of its own."""
    from milepost.errors import PlanChanged

    provider = Provider(desk.clock)
    reaches = iter([True, False, False])

    def find_it(key: Key) -> Found[str] | NotFound | CannotTell:
        return provider.find(key)

    @effect(provider="accounting", lookup=find_it, settle=timedelta(0))
    def post_left(key: Key) -> str:
        return provider.apply(key, "x")

    @task
    def leaves() -> str:
        return post_left() if next(reaches) else "done without"

    desk.dies(leaves, at="send", phase=SENT)
    with pytest.raises(PlanChanged, match="post_left"):
        desk.resume(leaves)
    assert desk.records("outcome_recorded")[-1].recovered
    desk.answer("accept")
    assert desk.resume(leaves) == "done without"


def test_open_intents_are_looked_up_before_any_body_runs(desk: Desk) -> None:
    """Rule 3: what an earlier process left open is known before anything new happens."""
    provider = Provider(desk.clock)
    order: list[str] = []

    def find_second(key: Key) -> Found[str] | NotFound | CannotTell:
        order.append("looked up")
        return provider.find(key)

    @step
    def first() -> int:
        order.append("body")
        return 1

    @effect(provider="accounting", lookup=find_second, settle=timedelta(0))
    def post_second(key: Key) -> str:
        return provider.apply(key, "x")

    @task
    def two() -> str:
        with contextlib.suppress(StepFailed):
            post_second()
        return str(first())

    provider.will_lose_its_answer()
    desk.dies(two, at="body", phase="durable", nth=1)
    order.clear()
    assert desk.resume(two) == "1"
    assert order[0] == "looked up"


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_lookup_that_finds_what_the_effect_cannot_return_cannot_tell(desk: Desk, kind: str) -> None:
    """Every resume ended in `not-encodable` of the effect, which nobody could answer; the lookup was not named."""

    def find(key: Key, invoice: str) -> Found[Any]:
        return Found(7)

    @effect(lookup=find, settle=timedelta(0))
    def send(key: Key, invoice: str) -> str:
        raise ConnectionError

    @task(name="plan")
    def plan() -> str:
        return send("INV-7")

    @task(name="plan")
    async def plan_async() -> str:
        return await send.aio("INV-7")

    chosen = plan if kind == "sync" else plan_async
    with pytest.raises(StepFailed):
        start(desk, chosen)
    with pytest.raises(OutcomeUnknown, match="the lookup of send found a result it cannot return"):
        resume(desk, chosen)
    desk.answer("applied", result="receipt-1")
    assert resume(desk, chosen) == "receipt-1"
