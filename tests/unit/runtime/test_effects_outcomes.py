"""Outcomes of a send: applied is final, rejected needs proof, everything else is unknown; and the retry policy."""

from __future__ import annotations

import asyncio
import functools
import itertools
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from desk import Desk
from posting import posting
from provider import AnswerLost, Provider, RateLimited, Unreachable

from milepost import Applied, Key, NotApplied, Retry, RunWaiting, Secret, StepFailed, effect, step, task
from milepost.errors import (
    AttemptsUsed,
    BadName,
    BadOption,
    DuplicateStep,
    OutcomeUnknown,
    PermissionMissing,
    RecordTooLarge,
    RequestChanged,
)


class Refused(Exception):
    """The provider looked at the call and refused it: nothing happened."""


# ── applied ─────────────────────────────────────────────────────────────────────────────────────────


def test_an_applied_effect_is_never_sent_again(desk: Desk) -> None:
    """Killed after the outcome was recorded: the recorded result is returned."""
    provider = Provider(desk.clock)
    plan = posting(provider)
    desk.dies_at_its_end(plan, "INV-7")
    desk.next_process()
    assert desk.resume(plan) == "receipt-1"
    assert len(provider.calls) == 1


def test_the_reference_of_an_applied_effect_is_kept(desk: Desk) -> None:
    """`Applied(result, ref=…)`: the caller gets the result, the record the provider's own reference."""
    provider = Provider(desk.clock)

    def send(provider: Provider, key: str, amount: int) -> Applied[int]:
        return Applied(amount, ref=provider.apply(key, amount))

    assert desk.run(posting(provider, send=send), "INV-7") == 10
    assert desk.records("outcome_recorded")[0].ref == "receipt-1"


def test_a_ref_function_that_raises_hides_nothing(desk: Desk) -> None:
    """The effect happened; a bad reference must not turn it into doubt."""
    provider = Provider(desk.clock)
    assert desk.run(posting(provider, ref=lambda result: result["ref"]), "INV-7") == "receipt-1"
    assert desk.records("outcome_recorded")[0].outcome == "applied"


def test_a_result_that_cannot_be_encoded_is_applied_and_asked_about(desk: Desk) -> None:
    """What happened happened: sending again because of a bad type would do it twice."""
    provider = Provider(desk.clock)

    def send(provider: Provider, key: str, amount: int) -> Applied[object]:
        return Applied(object(), ref=provider.apply(key, amount))

    plan = posting(provider, send=send)
    with pytest.raises(OutcomeUnknown, match="reference receipt-1"):
        desk.run(plan, "INV-7")
    (outcome,) = desk.records("outcome_recorded")
    assert (outcome.outcome, outcome.ref, outcome.result) == ("applied", "receipt-1", None)
    assert [choice.name for choice in desk.asked().choices] == ["applied", "stop"]
    desk.answer("applied", result="receipt-1")
    assert desk.resume(plan) == "receipt-1"
    assert len(provider.calls) == 1


def test_an_answer_without_a_result_is_asked_for_it_again(desk: Desk) -> None:
    provider = Provider(desk.clock)
    plan = posting(provider)
    desk.dies(plan, "INV-7", at="send")
    with pytest.raises(OutcomeUnknown):
        desk.resume(plan)
    desk.answer("applied", ref="receipt-1")
    with pytest.raises(OutcomeUnknown, match="result"):
        desk.resume(plan)
    desk.answer("applied", result="receipt-1")
    assert desk.resume(plan) == "receipt-1"
    assert len(provider.calls) == 1


def test_an_answered_result_of_the_wrong_type_is_asked_for_again(desk: Desk) -> None:
    """The first answer stands, so a slip of a person must not leave a run that nothing can mend."""
    sent: list[str] = []

    @effect(provider="accounting")
    def post_counted(key: Key) -> int:
        sent.append(str(key))
        return 7

    @task
    def counts() -> int:
        return post_counted()

    desk.dies(counts, at="send")
    with pytest.raises(OutcomeUnknown):
        desk.resume(counts)
    desk.answer("applied", result="seven")
    with pytest.raises(OutcomeUnknown, match="result"):
        desk.resume(counts)
    desk.answer("applied", result=7)
    assert desk.resume(counts) == 7
    assert len(sent) == 1


# ── rejected ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_body", [False, True], ids=["of the call", "of its body"])
@pytest.mark.parametrize("shape", ["def", "async", "aio"])
def test_only_a_call_that_did_not_fit_the_function_proves_that_nothing_happened(
    desk: Desk, is_body: bool, shape: str
) -> None:
    """A wrapper that takes less than it shows: no line of it ran. A TypeError out of its own lines proves nothing."""

    def shown(key: Key, amount: int) -> str: ...

    def sends(*args: Any) -> str:
        raise TypeError("the answer was none")

    async def awaited(*args: Any) -> str:
        raise TypeError("the answer was none")

    def takes_less() -> str: ...

    async def takes_less_awaited() -> str: ...

    plain = {True: sends, False: takes_less}[is_body]
    asynchronous = {True: awaited, False: takes_less_awaited}[is_body]
    put: Any = effect(provider="box")(functools.wraps(shown)(asynchronous if shape == "async" else plain))

    @task
    def puts() -> str:
        return str(put(1))

    @task
    async def puts_awaited() -> str:
        return str(await (put.aio if shape == "aio" else put)(1))

    with pytest.raises(StepFailed, match="TypeError"):
        desk.run(puts) if shape == "def" else asyncio.run(desk.run(puts_awaited))
    (outcome,) = desk.records("outcome_recorded")
    assert outcome.outcome == ("unknown" if is_body else "rejected")


@pytest.mark.parametrize("error", [NotApplied("closed period"), Refused("closed period")])
def test_rejected_needs_proof(desk: Desk, error: Exception) -> None:
    """`NotApplied` and the types named in `rejected=` prove that nothing happened: it is sent again without doubt."""
    provider = Provider(desk.clock)
    plan = posting(provider, rejected=Refused)
    provider.will_raise(error)
    with pytest.raises(StepFailed):
        desk.run(plan, "INV-7")
    assert desk.records("outcome_recorded")[0].outcome == "rejected"
    assert desk.resume(plan) == "receipt-1"
    assert len(provider.calls) == 2


def test_any_other_exception_is_unknown(desk: Desk) -> None:
    """A timeout, a 500 and a bug in the effect prove nothing."""
    provider = Provider(desk.clock)
    plan = posting(provider)
    provider.will_raise(Refused("not named in rejected="))
    with pytest.raises(StepFailed):
        desk.run(plan, "INV-7")
    assert desk.records("outcome_recorded")[0].outcome == "unknown"
    with pytest.raises(OutcomeUnknown):
        desk.resume(plan)


def test_nothing_is_rejected_while_an_earlier_send_is_open(desk: Desk) -> None:
    """The second call was refused, but the first may have arrived: the pair is still unknown."""
    provider = Provider(desk.clock)
    retry = Retry(on=(ConnectionError, NotApplied), attempts=2)
    plan = posting(provider, key_lifetime=timedelta(hours=1), retry=retry)
    provider.will_lose_its_answer()
    provider.will_raise(NotApplied("the ledger is locked"))
    with pytest.raises(AttemptsUsed):
        desk.run(plan, "INV-7")
    assert [r.outcome for r in desk.records("outcome_recorded")] == ["unknown", "unknown"]


def test_a_rejected_effect_without_policy_is_started_three_times_and_then_asked_about(desk: Desk) -> None:
    provider = Provider(desk.clock)
    plan = posting(provider)
    for _ in range(3):
        provider.will_raise(NotApplied("closed period"))
        with pytest.raises(StepFailed):
            desk.run(plan, "INV-7")
    with pytest.raises(AttemptsUsed, match="3 times"):
        desk.resume(plan)
    desk.answer("again")
    assert desk.resume(plan) == "receipt-1"


# ── retry ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_wait_is_recorded_and_absolute(desk: Desk) -> None:
    """A restart neither resets nor shortens a wait."""
    provider = Provider(desk.clock)
    plan = posting(provider, retry=Retry(on=NotApplied, attempts=3, first_wait=timedelta(minutes=4)))
    started_at = desk.clock.now()
    provider.will_raise(NotApplied("busy"))
    with pytest.raises(RunWaiting) as waiting:
        desk.run(plan, "INV-7", wait=False)
    assert desk.status() == "waiting"
    (recorded,) = desk.records("wait_recorded")
    until = started_at + timedelta(minutes=4)
    assert recorded.until == waiting.value.until == until.isoformat(timespec="microseconds")
    desk.clock.move(timedelta(minutes=3))
    with pytest.raises(RunWaiting) as again:
        desk.resume(plan, wait=False)
    assert again.value.until == recorded.until
    assert desk.resume(plan) == "receipt-1"
    assert desk.clock.waits == [until]


def test_waits_grow_by_the_factor_up_to_the_longest(desk: Desk) -> None:
    provider = Provider(desk.clock)
    policy = Retry(on=NotApplied, attempts=6, first_wait=timedelta(seconds=2), longest_wait=timedelta(seconds=9))
    for _ in range(5):
        provider.will_raise(NotApplied("busy"))
    at = desk.clock.now()
    assert desk.run(posting(provider, retry=policy), "INV-7") == "receipt-1"
    waits = [at, *desk.clock.waits]
    assert [int((b - a).total_seconds()) for a, b in itertools.pairwise(waits)] == [2, 4, 8, 9, 9]


@pytest.mark.parametrize(("asked_s", "waited_s"), [(90.0, 90), (0.5, 2), (None, 2), (float("nan"), 2), (1e12, 604800)])
def test_retry_after_is_honoured_when_longer(desk: Desk, asked_s: float | None, waited_s: int) -> None:
    """The provider knows better than the policy, within a week; nonsense is not believed."""
    provider = Provider(desk.clock)
    provider.will_raise(RateLimited(asked_s))
    plan = posting(
        provider, rejected=RateLimited, retry=Retry(on=RateLimited, attempts=2, first_wait=timedelta(seconds=2))
    )
    started_at = desk.clock.now()
    assert desk.run(plan, "INV-7") == "receipt-1"
    assert desk.clock.waits == [started_at + timedelta(seconds=waited_s)]


def test_the_deadline_counts_from_the_first_start_and_anew_when_a_person_says_again(desk: Desk) -> None:
    provider = Provider(desk.clock)
    policy = Retry(on=NotApplied, attempts=100, first_wait=timedelta(minutes=5), deadline=timedelta(minutes=12))
    for _ in range(5):
        provider.will_raise(NotApplied("busy"))
    plan = posting(provider, retry=policy)
    with pytest.raises(AttemptsUsed):
        desk.run(plan, "INV-7")
    assert len(provider.calls) == 3  # at 0, 5 and 10 minutes; the next would be at 15
    desk.answer("again")
    assert desk.resume(plan) == "receipt-1"
    assert len(provider.calls) == 6


def test_then_raise_gives_the_plan_the_same_failure_on_each_resume(desk: Desk) -> None:
    """A plan that caught a failure and went on must find it again, or it would take another way."""
    provider = Provider(desk.clock)
    policy = Retry(on=NotApplied, attempts=2, then="raise")
    plan = posting(provider, retry=policy)
    for _ in range(2):
        provider.will_raise(NotApplied("closed period"))
    with pytest.raises(StepFailed, match="closed period") as first:
        desk.run(plan, "INV-7")
    with pytest.raises(StepFailed) as second:
        desk.resume(plan)
    assert str(first.value) == str(second.value)
    assert len(provider.calls) == 2


def test_then_raise_is_never_for_an_open_intent(desk: Desk) -> None:
    """Attempts are used up, but whether it happened is unknown: that is a question, not a failure."""
    provider = Provider(desk.clock)
    policy = Retry(on=ConnectionError, attempts=1, then="raise")
    provider.will_lose_its_answer()
    with pytest.raises(OutcomeUnknown):
        desk.run(posting(provider, retry=policy), "INV-7")


def test_a_failure_the_plan_caught_is_the_same_on_each_resume(desk: Desk) -> None:
    """Without a policy a failure is tried again; once the plan went on from it, it is settled."""
    calls: list[str] = []

    @effect(provider="accounting")
    def post_refused(key: Key) -> str:
        calls.append(str(key))
        raise NotApplied("closed period")

    @step
    def note(text: str) -> str:
        return text

    @task
    def catches() -> str:
        try:
            return post_refused()
        except StepFailed:
            return note("left out")

    desk.dies_at_its_end(catches)
    assert desk.resume(catches) == "left out"
    assert len(calls) == 1


def test_a_killed_send_counts_against_the_policy(desk: Desk) -> None:
    """Starts are counted, so a send that kills its process is not repeated for ever."""
    provider = Provider(desk.clock, honours_keys=True)
    plan = posting(provider, key_lifetime=timedelta(days=9))
    for _ in range(3):
        desk.dies(plan, "INV-7", at="send", phase="before")
    with pytest.raises(AttemptsUsed):
        desk.resume(plan)
    assert provider.calls == []


# ── before the intent ───────────────────────────────────────────────────────────────────────────────


def test_a_missing_permission_is_refused_before_any_intent_and_recorded_once(desk: Desk) -> None:
    """Who looks for what was refused finds it, however often it was tried."""
    provider = Provider(desk.clock)
    plan = posting(provider, permission="mail:send")
    for go in (lambda: desk.run(plan, "INV-7"), lambda: desk.resume(plan)):
        with pytest.raises(PermissionMissing, match="mail:send"):
            go()
    assert provider.calls == []
    assert desk.records("intent_recorded") == []
    (refused,) = desk.records("effect_refused")
    assert (refused.permission, refused.held) == ("mail:send", ("accounting:write",))


def test_a_refusal_the_plan_catches_is_recorded_all_the_same(desk: Desk) -> None:
    """A plan that goes on without it leaves a trace that can be counted."""

    @effect(permission="mail:send")
    def remind(key: Key) -> None:
        raise AssertionError("it is not sent")

    @task(permissions=["accounting:write"])
    def quiet() -> str:
        try:
            remind()
        except PermissionMissing:
            return "went on"
        return "was sent"

    assert desk.run(quiet) == "went on"
    assert [record.path for record in desk.records("effect_refused")] == ["remind"]
    assert desk.records("run_started")[0].permissions == ("accounting:write",)


def test_an_intent_says_which_permission_it_used(desk: Desk) -> None:
    """What was held and never used can be told from what was."""
    desk.run(posting(Provider(desk.clock), permission="accounting:write"), "INV-7")
    assert [record.permission for record in desk.records("intent_recorded")] == ["accounting:write"]


def test_a_held_permission_lets_it_pass(desk: Desk) -> None:
    provider = Provider(desk.clock)
    assert desk.run(posting(provider, permission="accounting:write"), "INV-7") == "receipt-1"


def test_a_checkpoint_that_would_not_fit_is_refused_before_its_body(desk: Desk) -> None:
    """What cannot be recorded must not run."""
    ran: list[int] = []

    @step(next="x" * 9000)
    def heavy() -> int:
        ran.append(1)
        return 1

    @task
    def too_heavy() -> int:
        return heavy()

    with pytest.raises(RecordTooLarge, match="8192"):
        desk.run(too_heavy)
    assert ran == []


def test_a_second_unkeyed_call_of_one_effect_is_refused(desk: Desk) -> None:
    """Nothing but the order would tell the two apart on a resume."""
    provider = Provider(desk.clock)

    @effect(provider="accounting")
    def post_twice(key: Key, amount: int) -> str:
        return provider.apply(key, amount)

    @task
    def twice() -> str:
        post_twice(1)
        return post_twice(2)

    with pytest.raises(DuplicateStep):
        desk.run(twice)
    assert len(provider.calls) == 1


def test_a_key_that_is_no_text_is_refused(desk: Desk) -> None:
    provider = Provider(desk.clock)
    with pytest.raises(BadName):
        desk.run(posting(provider, key=lambda invoice, amount: None), "INV-7")
    assert provider.calls == []


def test_a_secret_argument_is_recorded_by_name_and_read_when_sent(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """The record of a request must be readable by an auditor who may not know the password."""
    monkeypatch.setenv("ACCOUNTING_TOKEN", "s3cr3t-v4lue-of-the-token")
    seen: list[str] = []

    @effect(provider="accounting")
    def post_with_token(key: Key, token: Secret) -> str:
        seen.append(token.read())
        raise NotApplied(f"bad token {token.read()}")

    @task
    def authorised() -> str:
        return post_with_token(Secret("ACCOUNTING_TOKEN"))

    with pytest.raises(StepFailed):
        desk.run(authorised)
    assert seen == ["s3cr3t-v4lue-of-the-token"]
    kept = b"".join(line.body for line in desk.store.records("r"))
    pointers = [r.request.digest for r in desk.records("intent_recorded")]
    kept += b"".join(a.data or b"" for a in desk.store.artifacts("r", pointers).values())
    kept += b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"ACCOUNTING_TOKEN" in kept
    assert b"s3cr3t" not in kept


@pytest.mark.parametrize("is_async", [False, True])
def test_a_secret_that_is_not_set_is_misuse_before_the_intent(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, is_async: bool
) -> None:
    """Nothing was sent, so nobody is to be asked what became of it; once it is set, the run goes on."""
    sent: list[str] = []

    @effect(provider="accounting")
    def post_signed(key: Key, tokens: list[Secret]) -> str:
        sent.append(tokens[0].read())
        return "receipt-1"

    @task
    def signs() -> str:
        return post_signed([Secret("F3_TOKEN")])

    @task
    async def signs_async() -> str:
        return await post_signed.aio([Secret("F3_TOKEN")])

    def carried(run: Any) -> Any:
        return asyncio.run(run) if is_async else run

    plan = signs_async if is_async else signs
    with pytest.raises(BadOption, match="the environment variable F3_TOKEN is not set"):
        carried(desk.run(plan))
    assert (sent, desk.records("intent_recorded"), desk.questions) == ([], [], [])
    monkeypatch.setenv("F3_TOKEN", "a token")
    assert carried(desk.resume(plan)) == "receipt-1"
    assert sent == ["a token"]


# ── another request ─────────────────────────────────────────────────────────────────────────────────


def changing(desk: Desk) -> tuple[Provider, Any]:
    """Bring a run to where its applied effect is called with another amount: 10 was applied, 12 is wanted."""
    provider = Provider(desk.clock, honours_keys=True)
    amounts = [10]
    plan = posting(provider, amount=lambda: amounts[0], key_lifetime=timedelta(days=1))
    desk.dies_at_its_end(plan, "INV-7")
    amounts[0] = 12
    with pytest.raises(RequestChanged, match=r"amount.*10.*12"):
        desk.resume(plan)
    return provider, plan


def test_request_changed_keep_returns_the_recorded_result(desk: Desk) -> None:
    provider, plan = changing(desk)
    desk.answer("keep")
    assert desk.resume(plan) == "receipt-1"
    assert len(provider.ledger) == 1


def test_request_changed_send_sends_the_new_one_under_a_new_key(desk: Desk) -> None:
    """The same key would make a provider that honours keys return the old receipt."""
    provider, plan = changing(desk)
    desk.answer("send")
    assert desk.resume(plan) == "receipt-2"
    (old, first, _), (new, second, _) = provider.ledger
    assert (first, second) == (["INV-7", 10], ["INV-7", 12])
    assert old != new


def test_request_changed_send_is_resolved_under_its_own_key_after_a_death(desk: Desk) -> None:
    """The new request is an effect like any other: killed in between, it is sent again with the new key."""
    provider, plan = changing(desk)
    desk.answer("send")
    desk.dies(plan, "INV-7", at="send")
    assert desk.resume(plan) == "receipt-2"
    assert len(provider.ledger) == 2


def test_request_changed_stop_ends_the_run(desk: Desk) -> None:
    from milepost.errors import RunEnded

    provider, plan = changing(desk)
    desk.answer("stop")
    with pytest.raises(RunEnded, match="stopped"):
        desk.resume(plan)
    assert len(provider.ledger) == 1
    assert desk.questions == []


def test_a_late_lost_answer_is_never_taken_for_unreachable(desk: Desk) -> None:
    """Two sends, the first one arrived unseen: the lookup finds it and the second is not made."""
    provider = Provider(desk.clock, shows_after=timedelta(seconds=20))
    provider.will_lose_its_answer()
    provider.will_raise(Unreachable())
    plan = posting(provider, lookup=True, retry=Retry(on=(AnswerLost, Unreachable), attempts=5))
    assert desk.run(plan, "INV-7") == "receipt-1"
    assert len(provider.calls) == 1


def test_a_result_that_names_a_missing_file_is_asked_for(desk: Desk) -> None:
    """It was applied, so it is never sent again; but a path to nothing is no result a plan may go on with."""
    sends: list[str] = []

    @effect(key=lambda number: number)
    def prints(key: Key, number: int) -> Path:
        sends.append(str(key))
        return Path("never-written.pdf")

    @task
    def printing() -> Path:
        return prints(1)

    with pytest.raises(OutcomeUnknown, match="its result is not known"):
        desk.run(printing)
    assert len(sends) == 1
