"""Keys of scope="task": the first intent claims the key in the store; later runs adopt, ask, wait or take over."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from desk import Desk
from posting import posting
from provider import Provider

from milepost import CannotTell, Found, Key, NotApplied, NotFound, Retry, RunWaiting, StepFailed, effect, task
from milepost.errors import BadOption, OutcomeUnknown, PlanChanged, RequestChanged, RunEnded


def shared(provider: Provider, **options: Any) -> Any:
    """Return the posting task with a key that all its runs share: the invoice number."""
    return posting(provider, scope="task", key=lambda invoice, amount: invoice, **options)


def test_a_shared_key_needs_a_name_of_the_thing(desk: Desk) -> None:
    with pytest.raises(BadOption, match="needs key="):
        posting(Provider(desk.clock), scope="task")


def test_a_later_run_adopts_what_an_earlier_one_applied(desk: Desk) -> None:
    """Two months that both contain INV-7 must post it once."""
    provider = Provider(desk.clock)
    plan = shared(provider)
    assert desk.run(plan, "INV-7", run_id="october") == "receipt-1"
    assert desk.run(plan, "INV-7", run_id="november") == "receipt-1"
    assert len(provider.calls) == 1
    (outcome,) = desk.records("outcome_recorded", run_id="november")
    assert (outcome.adopted, outcome.key) == ("october", provider.calls[0])


def test_runs_of_one_task_have_different_keys_without_it(desk: Desk) -> None:
    provider = Provider(desk.clock)
    plan = posting(provider, key=lambda invoice, amount: invoice)
    desk.run(plan, "INV-7", run_id="october")
    desk.run(plan, "INV-7", run_id="november")
    assert len(set(provider.calls)) == 2


def asked_for_another(desk: Desk) -> tuple[Provider, Any, list[int]]:
    provider = Provider(desk.clock, honours_keys=True)
    amounts = [10]
    plan = shared(provider, amount=lambda: amounts[0])
    desk.run(plan, "INV-7", run_id="october")
    amounts[0] = 12
    with pytest.raises(RequestChanged, match="october"):
        desk.run(plan, "INV-7", run_id="november")
    return provider, plan, amounts


def test_another_request_under_a_shared_key_is_asked_about_and_can_be_kept(desk: Desk) -> None:
    provider, plan, _ = asked_for_another(desk)
    desk.answer("keep")
    assert desk.resume(plan, run_id="november") == "receipt-1"
    assert len(provider.calls) == 1


def test_another_request_under_a_shared_key_can_be_sent_under_a_key_of_its_own(desk: Desk) -> None:
    provider, plan, _ = asked_for_another(desk)
    desk.answer("send")
    assert desk.resume(plan, run_id="november") == "receipt-2"
    assert len({key for key, _, _ in provider.ledger}) == 2


def test_what_was_adopted_is_compared_with_what_the_plan_asks_later(desk: Desk) -> None:
    """Adopted is recorded like applied: another request afterwards is a question, not the old receipt."""
    provider = Provider(desk.clock)
    amounts = [10]
    plan = shared(provider, amount=lambda: amounts[0])
    desk.run(plan, "INV-7", run_id="october")
    desk.dies(plan, "INV-7", at="append:run_ended", phase="before", run_id="november")
    desk.dies(plan, "INV-7", at="append:run_ended", phase="done", run_id="november")
    amounts[0] = 12
    with pytest.raises(RequestChanged):
        desk.resume(plan, run_id="november")


def test_a_key_that_is_open_in_another_run_is_waited_for(desk: Desk) -> None:
    """Nobody knows yet whether the other run's send happened: it is the other run's to find out."""
    provider = Provider(desk.clock)
    plan = shared(provider, lookup=True, settle=timedelta(0))
    desk.dies(plan, "INV-7", at="send", run_id="october")
    with pytest.raises(RunWaiting, match="under way in run october"):
        desk.run(plan, "INV-7", run_id="november", wait=False)
    assert desk.resume(plan, run_id="october") == "receipt-1"
    assert desk.resume(plan, run_id="november") == "receipt-1"
    assert len(provider.calls) == 1


def test_a_key_that_stays_open_is_asked_about(desk: Desk) -> None:
    """Waiting has a bound; a person settles the other run first."""
    provider = Provider(desk.clock)
    plan = shared(provider, lookup=True, settle=timedelta(0))
    desk.dies(plan, "INV-7", at="send", run_id="october")
    with pytest.raises(PlanChanged, match="october owns the key"):
        desk.run(plan, "INV-7", run_id="november")
    desk.resume(plan, run_id="october")
    desk.answer("accept")
    assert desk.resume(plan, run_id="november") == "receipt-1"
    assert len(provider.calls) == 1


def test_what_a_person_said_of_a_shared_key_counts_for_later_runs(desk: Desk) -> None:
    """Otherwise they would wait for ever for an outcome that is known."""
    provider = Provider(desk.clock)
    plan = shared(provider)
    desk.dies(plan, "INV-7", at="send", run_id="october")
    with pytest.raises(OutcomeUnknown):
        desk.resume(plan, run_id="october")
    desk.answer("applied", ref="receipt-1", result="receipt-1")
    assert desk.resume(plan, run_id="october") == "receipt-1"
    assert desk.run(plan, "INV-7", run_id="november") == "receipt-1"
    assert len(provider.calls) == 1


def test_a_person_may_have_a_key_taken_over_that_nobody_settles(desk: Desk) -> None:
    """The other run was ended in doubt, or is gone: a person says that the key is to be used all the same."""
    provider = Provider(desk.clock)
    plan = shared(provider)
    desk.dies(plan, "INV-7", at="send", phase="before", run_id="october")
    with pytest.raises(OutcomeUnknown):
        desk.resume(plan, run_id="october")
    desk.answer("stop")
    with pytest.raises(RunEnded):
        desk.resume(plan, run_id="october")
    with pytest.raises(PlanChanged, match="stopped or pruned settles nothing any more: look for mp1-"):
        desk.run(plan, "INV-7", run_id="november")
    desk.answer("accept")
    assert desk.resume(plan, run_id="november") == "receipt-1"


def test_a_run_whose_records_cannot_be_trusted_may_have_sent(desk: Desk) -> None:
    """Cannot tell is not never: a key is not taken over from a journal that this process cannot read."""
    provider = Provider(desk.clock)
    plan = shared(provider)
    desk.seal_key = b"another key, long enough"
    desk.dies(plan, "INV-7", at="send", run_id="october")
    desk.seal_key = None
    with pytest.raises(RunWaiting):
        desk.run(plan, "INV-7", run_id="november", wait=False)
    assert len(provider.calls) == 1


def test_a_key_whose_owner_never_sent_is_taken_over(desk: Desk) -> None:
    """Claimed and dead before its intent: nothing can have happened."""
    provider = Provider(desk.clock)
    plan = shared(provider, retry=Retry(on=NotApplied, attempts=3))
    provider.will_raise(NotApplied("closed period"))
    with pytest.raises(RunWaiting):
        desk.run(plan, "INV-7", run_id="october", wait=False)
    desk.dies(plan, "INV-7", at="append:intent_recorded", phase="before", run_id="october")
    assert desk.run(plan, "INV-7", run_id="november") == "receipt-1"
    assert desk.resume(plan, run_id="october") == "receipt-1"
    assert len(provider.ledger) == 1


def test_a_key_whose_owner_was_rejected_is_taken_over(desk: Desk) -> None:
    provider = Provider(desk.clock)
    plan = shared(provider)
    provider.will_raise(NotApplied("closed period"))
    with pytest.raises(StepFailed):
        desk.run(plan, "INV-7", run_id="october")
    assert desk.run(plan, "INV-7", run_id="november") == "receipt-1"
    assert desk.resume(plan, run_id="october") == "receipt-1"
    assert len(provider.ledger) == 1


def test_an_effect_in_doubt_that_got_a_shared_key_since_is_found_by_its_own(desk: Desk) -> None:
    """It was sent before runs shared its key: nobody claimed the one it went out under."""
    provider = Provider(desk.clock)

    def plan(**options: Any) -> Any:
        def find(key: Key, number: int) -> Found[Any] | NotFound | CannotTell:
            return provider.find(key)

        @effect(name="pay_shared", key=str, lookup=find, settle=timedelta(0), **options)
        def pay(key: Key, number: int) -> str:
            return provider.apply(key, number)

        @task(name="shared_since")
        def shared_since() -> list[str]:
            return [pay(7), pay(8)]

        return shared_since

    desk.dies(plan(), at="send", phase="durable")
    assert desk.run(plan(scope="task")) == ["receipt-1", "receipt-2"]
    assert len(provider.calls) == 2
