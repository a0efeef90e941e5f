"""What `resume --check` says is what the resume then does; the check itself sends, asks and writes nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from desk import Desk
from posting import posting
from provider import Provider

from milepost import Key, Retry, RunWaiting, effect, step, task
from milepost.errors import OutcomeUnknown
from milepost.protocol.failure import VerificationFailed
from milepost.protocol.findings import Finding
from milepost.runtime.active import RunOptions
from milepost.runtime.check import check_run

DAY = timedelta(hours=24)


def check(desk: Desk, plan: Any, run_id: str = "r") -> list[Finding]:
    return check_run(plan.spec, run_id, desk.store, RunOptions(store=desk.store, clock=desk.clock))


def died_sending(desk: Desk, **declared: Any) -> tuple[Any, Provider]:
    provider = Provider(desk.clock, honours_keys=True)
    plan = posting(provider, **declared)
    desk.dies(plan, "INV-7", at="send")
    return plan, provider


def test_what_can_be_looked_up_is_said_to_be(desk: Desk) -> None:
    plan, provider = died_sending(desk, lookup=True)
    found = check(desk, plan)[2]
    assert (found.state, found.found.partition(":")[0]) == ("wait", "would be looked up before anything runs")
    assert provider.lookups == []
    assert desk.resume(plan) == "receipt-1"
    assert len(provider.calls) == 1


def test_within_the_lifetime_of_its_key_it_is_said_to_be_sent_again(desk: Desk) -> None:
    plan, provider = died_sending(desk, key_lifetime=DAY)
    found = check(desk, plan)[2]
    assert (found.state, "sent again with the same key" in found.found) == ("ok", True)
    assert desk.resume(plan) == "receipt-1"
    assert len(provider.calls) == 2


def test_after_the_lifetime_of_its_key_a_question_is_foreseen(desk: Desk) -> None:
    plan, _ = died_sending(desk, key_lifetime=DAY)
    desk.clock.move(DAY)
    found = check(desk, plan)[2]
    assert (found.state, "the lifetime of its key, 1 day, 0:00:00, is over" in found.found) == ("ask", True)
    with pytest.raises(OutcomeUnknown):
        desk.resume(plan)


def test_what_nobody_can_look_up_is_foreseen_as_a_question(desk: Desk) -> None:
    plan, provider = died_sending(desk)
    found = check(desk, plan)[2]
    assert (found.state, found.found.partition(": post")[0]) == ("ask", "would ask: nobody can look it up")
    with pytest.raises(OutcomeUnknown):
        desk.resume(plan)
    assert len(provider.calls) == 1


def test_a_check_claims_no_shared_key(desk: Desk) -> None:
    """It changes nothing: the key stays free for whoever runs first."""
    provider = Provider(desk.clock)
    plan = posting(provider, scope="task", key=lambda invoice, amount: invoice)
    desk.dies(plan, "INV-7", at="claim", phase="before", settled=True)
    found = check(desk, plan)[4]
    assert (found.state, "its key is shared by all runs of the task" in found.found) == ("ok", True)
    assert desk.run(plan, "INV-7", run_id="other") == "receipt-1"
    assert desk.resume(plan) == "receipt-1"
    assert len(provider.calls) == 1


def test_a_run_that_is_done_would_return_its_result(desk: Desk) -> None:
    """A check exits as the resume would, and that one returns what is recorded."""

    @task
    def plan() -> int:
        return 1

    assert desk.run(plan) == 1
    found = check(desk, plan)
    assert {line.state for line in found} == {"ok"}
    assert found[4].found == "the run is done: its recorded result is returned"
    assert desk.resume(plan) == 1


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_check_waits_for_nothing_and_runs_no_verifier(desk: Desk, kind: str) -> None:
    """It is typed to learn what will happen, not to make it happen."""
    verified: list[int] = []

    def noted(output: int) -> bool:
        verified.append(output)
        return len(verified) > 1

    @step(verify=noted, retry=Retry(on=VerificationFailed, attempts=3, first_wait=timedelta(minutes=5)))
    def counts() -> int:
        return 1

    @task(name="plan")
    def plan() -> int:
        return counts()

    @task(name="plan")
    async def async_plan() -> int:
        return await counts.aio()

    with pytest.raises(RunWaiting):
        desk.run(plan, wait=False)
    began = desk.clock.now()
    found = check(desk, plan if kind == "sync" else async_plan)[4]
    assert found.state == "wait"
    assert "counts (waits until 2026-11-02T08:05" in found.found
    assert (desk.clock.now(), verified) == (began, [1])
    desk.dies(plan, at="verify", phase="before", settled=True)
    assert "counts (its output is verified)" in check(desk, plan if kind == "sync" else async_plan)[4].found
    assert verified == [1]


def test_a_check_says_what_would_be_done_not_what_is_recorded(desk: Desk) -> None:
    """*outcome recorded* of an effect whose outcome is not recorded read as its state."""

    @step
    def first() -> int:
        return 1

    @effect()
    def second(key: Key) -> int:
        return 2

    @task
    def plan() -> int:
        return first() + second()

    desk.dies(plan, at="body", phase="before", nth=2)
    assert check(desk, plan)[4].found == "next: first (its body would run)"
    desk.dies(plan, at="append:intent_recorded", phase="before", settled=True)
    assert check(desk, plan)[4].found == "next: second (it would be sent)"
