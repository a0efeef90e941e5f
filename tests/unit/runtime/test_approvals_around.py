"""Approvals beside everything else a run goes through: forks, cancels, checks, keys, shadow, changed plans."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from desk import Desk
from people import ADA, BOB, says
from provider import Provider

from milepost import Key, effect, step, task
from milepost.errors import AnswerRefused, ApprovalNeeded, CorruptRecord, OutcomeUnknown, PlanChanged, RunEnded
from milepost.records.rows import AnswerRow
from milepost.records.seal import Sealer
from milepost.records.times import format_time
from milepost.runtime import fork
from milepost.runtime.active import RunOptions
from milepost.runtime.answering import ask_to_cancel, asked
from milepost.runtime.check import check_run
from milepost.runtime.clock import Clock
from milepost.runtime.fork import fork_run
from milepost.runtime.leases import me
from milepost.runtime.verify import verify_run
from milepost.stores.contract import NewRun

KEY = b"k" * 32


@pytest.fixture
def provider(desk: Desk) -> Provider:
    return Provider(desk.clock, honours_keys=True)


def buying(provider: Provider, **options: Any) -> Any:
    @step
    def choose() -> str:
        return "tea"

    @effect(key=lambda item: item, approve="before", provider="shop", **options)
    def buy(key: Key, item: str) -> str:
        return provider.apply(key, item)

    @task
    def shopping() -> str:
        return buy(choose())

    return shopping


def asks(desk: Desk, plan: Any, match: str = "buy", **options: Any) -> None:
    with pytest.raises(ApprovalNeeded, match=match):
        desk.run(plan, **options)


def forge(
    desk: Desk, *, by: str = "ada@office", seal_key: bytes | None = None, choice: str = "approve", place: int = 1
) -> None:
    """Write an answer straight into the store, past all doors."""
    row = desk.question
    given = AnswerRow(row.question_id, row.run_id, choice, by, format_time(desk.clock.now()), place=place, door="cli")
    desk.store.answer(given if seal_key is None else Sealer(row.run_id, seal_key).sealed(given))


# ── trust ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("with_key", [None, b"x" * 32])
def test_an_approval_that_was_not_given_with_the_runs_key_is_refused(
    desk: Desk, provider: Provider, with_key: bytes | None
) -> None:
    desk.seal_key = KEY
    plan = buying(provider)
    asks(desk, plan)
    forge(desk, seal_key=with_key)
    with pytest.raises(CorruptRecord, match="the answer to q-"):
        desk.resume(plan)
    assert provider.calls == []


def test_of_several_approvals_each_must_be_given_with_the_runs_key(desk: Desk, provider: Provider) -> None:
    desk.seal_key = KEY
    plan = buying(provider, approvals=2)
    asks(desk, plan)
    says(desk, ADA, "approve")
    row = desk.question
    at = format_time(desk.clock.now())
    desk.store.answer(AnswerRow(row.question_id, row.run_id, "approve", "bob@office", at, place=2))
    with pytest.raises(CorruptRecord, match="no seal"):
        desk.resume(plan)
    with pytest.raises(CorruptRecord, match="no seal"):
        says(desk, BOB, "approve")


def test_one_answer_is_not_counted_twice_under_another_place(desk: Desk, provider: Provider) -> None:
    """The place is under the seal: a copy of an honest answer is no second one."""
    desk.seal_key = KEY
    plan = buying(provider, approvals=2)
    asks(desk, plan)
    given = says(desk, ADA, "approve")
    desk.store.answer(replace(given, place=2))
    with pytest.raises(CorruptRecord, match="does not fit"):
        desk.resume(plan)


def test_an_answer_by_the_agent_is_refused_also_past_the_doors(desk: Desk, provider: Provider) -> None:
    plan = buying(provider)
    asks(desk, plan)
    forge(desk, by=next(iter(desk.snapshot().agents)))
    with pytest.raises(CorruptRecord, match="who runs the task and cannot allow what it asks"):
        desk.resume(plan)
    assert provider.calls == []


@pytest.mark.parametrize(
    ("options", "given"),
    [({"approvers": ("finance",)}, ["eve@office"]), ({"approvals": 2}, ["eve@office", "eve@home"])],
    ids=["of no approver", "of one person twice"],
)
def test_who_may_not_answer_may_not_past_the_doors_either(
    desk: Desk, provider: Provider, options: dict[str, Any], given: list[str]
) -> None:
    plan = buying(provider, **options)
    asks(desk, plan)
    for place, by in enumerate(given, 1):
        forge(desk, by=by, place=place)
    with pytest.raises(CorruptRecord, match="eve@"):
        desk.resume(plan)
    assert provider.calls == []


def test_what_was_approved_passes_every_check(desk: Desk, provider: Provider) -> None:
    desk.seal_key = KEY
    plan = buying(provider, approvals=2)
    asks(desk, plan)
    says(desk, ADA, "approve")
    says(desk, BOB, "edit", request={"item": "tea"})
    asks(desk, plan, "bob@office edited it")
    says(desk, ADA, "approve")
    says(desk, BOB, "approve")
    desk.resume(plan)
    assert [verdict.found for verdict in verify_run(desk.store, "r", KEY, {}) if not verdict.ok] == []


def test_a_process_below_one_that_works_on_a_run_answers_nothing(desk: Desk, provider: Provider) -> None:
    """An agent starts a child with an emptied environment to answer what another run of it asks."""
    plan = buying(provider)
    asks(desk, plan)
    above = replace(me(desk.clock), pid=os.getppid())
    lease = desk.store.create_run(NewRun("agents", "scheming", "agents", None, above.since, above))
    assert lease is not None
    with pytest.raises(AnswerRefused, match="started by run agents"):
        says(desk, ADA, "approve")
    desk.store.release(lease)
    says(desk, ADA, "approve")


# ── other ways of a run ─────────────────────────────────────────────────────────────────────────────


def test_a_fork_asks_anew(desk: Desk, provider: Provider) -> None:
    """The approval was for another run."""
    plan = buying(provider)
    asks(desk, plan)
    says(desk, ADA, "approve")
    clock: Clock = desk.clock
    fork_run(desk.store, "r", "choose", "r2", seal_key=None, clock=clock, environ={})
    with pytest.raises(ApprovalNeeded):
        desk.resume(plan, run_id="r2")
    assert provider.calls == []
    says(desk, ADA, "approve", of=desk.store.questions("r2")[0])
    assert desk.resume(plan, run_id="r2") == "receipt-1"


def test_a_cancelled_run_waits_for_no_approval(desk: Desk, provider: Provider) -> None:
    plan = buying(provider)
    asks(desk, plan)
    ask_to_cancel(desk.store, "r", seal_key=None, by="ada", at=format_time(desk.clock.now()))
    with pytest.raises(RunEnded, match="cancelled"):
        desk.resume(plan)
    assert desk.questions == []


def test_a_check_says_that_it_would_ask_and_that_it_would_be_sent(desk: Desk, provider: Provider) -> None:
    plan = buying(provider)
    desk.dies(plan, at="ask", phase="before", settled=True)

    def continues() -> tuple[str, str]:
        finding = check_run(plan.spec, "r", desk.store, RunOptions(store=desk.store, clock=desk.clock))[4]
        return finding.state, finding.found

    assert continues()[0] == "ask"
    assert "buy[tea] is to be sent to shop" in continues()[1]
    asks(desk, plan)
    assert continues()[0] == "ask"
    says(desk, ADA, "approve")
    desk.dies(plan, at="append:intent_recorded", phase="before", settled=True)
    assert continues() == ("ok", "next: buy[tea] (it would be sent)")


def test_a_shadow_run_asks_nobody_and_says_what_it_would_have_asked(desk: Desk) -> None:
    @step(approve="before", review="after")
    def choose() -> str:
        return "tea"

    @effect(key=lambda item: item, approve="before", approvers=("finance",), provider="shop", shadow=lambda item: item)
    def buy(key: Key, item: str) -> str:
        raise AssertionError

    @task
    def shopping() -> str:
        return buy(choose())

    assert desk.run(shopping, shadow=True) == "tea"
    assert desk.questions == []
    assert desk.records("effect_shadowed")[0].would_ask == "1 of finance"


def test_a_changed_plan_is_asked_about_before_the_approval(desk: Desk, provider: Provider) -> None:
    """What is called where something else stood is first a question about the plan."""

    def plan_of(*items: str) -> Any:
        @effect(key=lambda item: item, approve="before", provider="shop")
        def buy(key: Key, item: str) -> str:
            return provider.apply(key, item)

        @task
        def shopping() -> list[str]:
            return [buy(item) for item in items]

        return shopping

    asks(desk, plan_of("tea"))
    says(desk, ADA, "approve")
    desk.dies_at_its_end(plan_of("tea"))
    with pytest.raises(PlanChanged):
        desk.resume(plan_of("gold", "tea"))
    says(desk, BOB, "accept")
    with pytest.raises(ApprovalNeeded, match="gold"):
        desk.resume(plan_of("gold", "tea"))


def test_in_doubt_it_is_looked_up_before_anybody_is_asked(
    desk: Desk, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fork could not read all that its family sent: an approval would perhaps be for a second payment."""

    @effect(key=lambda item: item, approve="before", lookup=lambda key, item: provider.find(key), settle=timedelta(0))
    def buy(key: Key, item: str) -> str:
        return provider.apply(key, item)

    @step
    def choose() -> list[str]:
        return ["tea", "salt"]

    @task
    def shopping() -> list[str]:
        return buy.map(choose())

    with pytest.raises(ApprovalNeeded):
        desk.run(shopping)
    monkeypatch.setattr(fork, "went_back", lambda *_: (1, 2))  # as of a store that went back in time
    fork_run(desk.store, "r", "choose", "r2", seal_key=None, clock=desk.clock, environ={})
    key = provider_key(desk, "buy[tea]")
    provider.ledger.append((key, "tea", 0.0))
    with pytest.raises(ApprovalNeeded):
        desk.resume(shopping, run_id="r2")
    assert [q.path for q in desk.store.questions("r2")] == ["buy[salt]"]
    assert [record.path for record in desk.records("outcome_recorded", run_id="r2")] == ["buy[tea]"]


def provider_key(desk: Desk, path: str) -> str:
    """Return the key under which a call would be sent, as its question shows it: it is the family's."""
    question = next(q for q in desk.store.questions("r", closed=True) if q.path == path)
    pointer = asked(question).evidence
    assert pointer is not None
    data = desk.store.artifacts("r", [pointer.digest])[pointer.digest].data
    assert data is not None
    return str(json.loads(data)["key"])


def test_an_outer_step_is_not_used_up_by_the_approvals_inside_it(desk: Desk, provider: Provider) -> None:
    """Each time it stops to ask, its start is given back."""

    @effect(key=lambda item: item, approve="before", provider="shop")
    def buy(key: Key, item: str) -> str:
        return provider.apply(key, item)

    @step
    def everything() -> list[str]:
        return [buy(item) for item in ("a", "b", "c", "d", "e")]

    @task
    def shopping() -> list[str]:
        return everything()

    for _ in range(5):
        asks(desk, shopping)
        says(desk, ADA, "approve")
    assert len(desk.resume(shopping)) == 5


def test_a_shared_key_is_approved_by_the_run_that_sends(desk: Desk, provider: Provider) -> None:
    """`scope="task"`: a later run takes over what was applied, and asks nobody for it."""
    plan = buying(provider, scope="task")
    asks(desk, plan)
    says(desk, ADA, "approve")
    assert desk.resume(plan) == "receipt-1"
    assert desk.run(plan, run_id="later") == "receipt-1"
    assert len(provider.calls) == 1


def test_an_effect_in_doubt_asks_first_what_became_of_it(desk: Desk, provider: Provider) -> None:
    """Not applied, says somebody: then it is sent under the approval it has."""
    plan = buying(provider)
    asks(desk, plan)
    says(desk, ADA, "approve")
    desk.dies(plan, at="append:intent_recorded")
    with pytest.raises(OutcomeUnknown):
        desk.resume(plan)
    says(desk, BOB, "not-applied")
    assert desk.resume(plan) == "receipt-1"
    assert len(desk.records("question_asked")) == 2
