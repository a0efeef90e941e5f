"""Rule 5 where order tells little: what was sent before, and bears another name now, is not sent again unasked.

On branches, out of and into steps, in forks. A plan that did not change is asked nothing.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from desk import Desk
from provider import AnswerLost, Provider

from milepost import CannotTell, Found, Key, NotFound, carry, effect, step, task
from milepost.errors import OutcomeUnknown, PlanChanged, SourceChanged, StepFailed
from milepost.runtime import perform
from milepost.runtime.active import ActiveRun
from milepost.runtime.fork import fork_run
from milepost.runtime.scope import current
from milepost.runtime.verify import verify_run

WAIT_S = 20
LIFETIME = {"key_lifetime": timedelta(days=1)}


@pytest.fixture
def provider(desk: Desk) -> Provider:
    return Provider(desk.clock, honours_keys=True)


@pytest.fixture
def short_lull(monkeypatch: pytest.MonkeyPatch) -> None:
    """What never comes is waited for no longer than a test wants to take."""
    monkeypatch.setattr(perform, "LULL_S", 0.05)


@step
def amounts() -> list[int]:
    return [7, 8, 9]


def paying(
    provider: Provider, name: str = "pay", prefix: str = "", then: Callable[[int], None] | None = None, **options: Any
) -> Any:
    """Return the effect of these plans, under one name and with one way to make its key; `then` happens behind it."""

    @effect(name=name, key=lambda amount: f"{prefix}{amount}", **options)
    def pay(key: Key, amount: int) -> str:
        receipt = provider.apply(key, amount)
        if then is not None:
            then(amount)
        return receipt

    return pay


def in_step(pay: Any, name: str = "batch") -> Any:
    @step(name=name, key=str)
    def batch(amount: int) -> str:
        return pay(amount)  # type: ignore[no-any-return]

    return batch


def one_by_one(call: Callable[[int], Any]) -> Any:
    @task(name="payday")
    def payday() -> list[str]:
        return [call(amount) for amount in amounts()]

    return payday


def at_once(call: Any) -> Any:
    @task(name="payday")
    def payday() -> list[str]:
        return call.map(amounts(), concurrency=3)  # type: ignore[no-any-return]

    return payday


def kinds(desk: Desk) -> list[tuple[str, str | None]]:
    return [(row.kind, row.path) for row in desk.questions]


# ── out of steps and into steps ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("plan", [one_by_one, at_once])
def test_what_was_applied_in_a_step_that_did_not_finish_stands_in_its_place(
    desk: Desk, provider: Provider, plan: Callable[[Any], Any]
) -> None:
    """A lookup found it: it is no doubt any more. Taken out of the step, with another key, it would be paid twice."""

    def find(key: Key, amount: int) -> Found[Any] | NotFound | CannotTell:
        return provider.find(key)

    known = {"lookup": find, "settle": timedelta(0)}
    desk.dies(plan(in_step(paying(provider, **known))), at="send", nth=2)
    before = len(provider.calls)
    with pytest.raises(PlanChanged, match=r"pay\[x\d\], which has no record, where batch\[\d\] was"):
        desk.run(plan(paying(provider, prefix="x", **known)))
    assert len(provider.calls) == before


def test_a_step_that_paid_and_is_called_no_more_is_asked_about_when_the_plan_ends(
    desk: Desk, provider: Provider
) -> None:
    """It did not finish, but what it sent stays sent."""
    batch = in_step(paying(provider))
    desk.dies(one_by_one(batch), at="append:step_verified", phase="before", nth=2, settled=True)
    with pytest.raises(PlanChanged, match=r"batch\[7\] was begun \(an effect in it was applied\) before, but the plan"):
        desk.run(one_by_one(lambda amount: str(amount)))
    desk.answer("accept")
    assert desk.run(one_by_one(lambda amount: str(amount))) == ["7", "8", "9"]
    assert len(provider.calls) == 1


def test_a_step_that_was_accepted_covers_no_doubt_around_it(desk: Desk, provider: Provider) -> None:
    """The question named what was finished; what is in doubt is asked about before anything in the step is sent."""
    desk.dies(one_by_one(paying(provider)), at="send", nth=2)
    changed = one_by_one(in_step(paying(provider, "pay_out", "x")))
    with pytest.raises(PlanChanged, match=r"batch\[7\], which has no record, where pay\[7\] was finished"):
        desk.run(changed)
    desk.answer("accept")
    with pytest.raises(OutcomeUnknown, match=r"batch\[7\]/pay_out\[x7\] has no record and may be .* whether pay\[8\]"):
        desk.run(changed)
    assert len(provider.calls) == 2
    desk.answer("not-applied")
    with pytest.raises(
        PlanChanged, match=r"batch\[7\]/pay_out\[x7\], which has no record, where pay\[7\] was finished"
    ):
        desk.run(changed)
    assert len(provider.calls) == 2, "what was applied was just this request"
    desk.answer("accept")
    assert len(desk.run(changed)) == 3
    assert len(provider.calls) == 5, "a person knew all of it, and let them be sent"


def test_all_that_is_in_doubt_is_asked_about_at_once(desk: Desk, provider: Provider) -> None:
    """One question for each send, whichever of the calls in their place comes first."""
    together = threading.Barrier(3)

    def then(amount: int) -> None:
        together.wait(WAIT_S)
        raise AnswerLost

    with pytest.raises(StepFailed):
        desk.run(at_once(paying(provider, then=then)))
    with pytest.raises(OutcomeUnknown):
        desk.run(at_once(paying(provider, "pay_out")))
    assert sorted(kinds(desk)) == [("outcome_unknown", f"pay[{amount}]") for amount in (7, 8, 9)]
    assert len(provider.calls) == 3


# ── branches ────────────────────────────────────────────────────────────────────────────────────────


def with_tasks(call: Any, gate: Callable[[int], None] = lambda amount: None) -> Any:
    """Return a plan that calls it on three branches, each when `gate` lets it go on."""

    async def one(amount: int) -> str:
        await asyncio.to_thread(gate, amount)
        return await call.aio(amount)  # type: ignore[no-any-return]

    @task(name="payday")
    async def payday() -> list[str]:
        return list(await asyncio.gather(*map(one, await amounts.aio())))

    return payday


def with_threads(call: Any, gate: Callable[[int], None] = lambda amount: None) -> Any:
    def one(amount: int) -> str:
        gate(amount)
        return call(amount)  # type: ignore[no-any-return]

    @task(name="payday")
    def payday() -> list[str]:
        with ThreadPoolExecutor(3) as pool:
            return list(pool.map(carry(one), amounts()))

    return payday


def with_tasks_in_a_group(call: Any) -> Any:
    """Return the same plan after its code was changed."""

    async def one(amount: int) -> str:
        return await call.aio(amount)  # type: ignore[no-any-return]

    @task(name="payday")
    async def payday() -> list[str]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(amount)) for amount in await amounts.aio()]
        return [task.result() for task in tasks]

    return payday


def with_more_threads(call: Any) -> Any:
    @task(name="payday")
    def payday() -> list[str]:
        with ThreadPoolExecutor(30) as pool:
            return list(pool.map(carry(call), amounts()))

    return payday


def ran(desk: Desk, plan: Any) -> Any:
    found = desk.run(plan)
    return asyncio.run(found) if asyncio.iscoroutine(found) else found


def left_in_doubt(desk: Desk, provider: Provider, plan: Callable[..., Any], **options: Any) -> None:
    """Let a run pay 7, lose the answer about 8 and end before it comes to 9."""
    paid = {amount: threading.Event() for amount in (7, 8)}

    def then(amount: int) -> None:
        assert amount == 7 or paid[7].wait(WAIT_S)
        paid[amount].set()
        if amount == 8:
            raise AnswerLost

    def gate(amount: int) -> None:
        if amount == 9:
            assert paid[8].wait(WAIT_S)
            raise LookupError

    with pytest.raises((StepFailed, LookupError)):
        ran(desk, plan(paying(provider, then=then, **options), gate))
    assert sorted(amount for _, amount, _ in provider.ledger) == [7, 8]


def late(amount: int) -> tuple[Callable[[int], None], Callable[[int], None]]:
    """Return a gate that holds one branch until 9 was paid, and what hears that."""
    is_paid = threading.Event()

    def gate(at: int) -> None:
        assert at != amount or is_paid.wait(WAIT_S)

    def then(paid: int) -> None:
        if paid == 9:
            is_paid.set()

    return gate, then


@pytest.mark.usefixtures("short_lull")
@pytest.mark.parametrize("plan", [with_tasks, with_threads])
def test_a_doubt_on_a_branch_is_asked_about_before_anything_without_record_is_sent(
    desk: Desk, provider: Provider, plan: Callable[..., Any]
) -> None:
    """Nothing but its name was changed, and no order tells that it is the same call."""
    left_in_doubt(desk, provider, plan)
    with pytest.raises(OutcomeUnknown, match=r"has no record and may be .*, but nobody knows whether pay\[8\]"):
        ran(desk, plan(paying(provider, "pay_out")))
    assert kinds(desk) == [("outcome_unknown", "pay[8]")]
    assert len(provider.calls) == 2


@pytest.mark.usefixtures("short_lull")
@pytest.mark.parametrize(("plan", "changed"), [(with_tasks, with_tasks_in_a_group), (with_threads, with_more_threads)])
def test_what_was_applied_on_a_branch_is_asked_about_when_the_code_changed(
    desk: Desk, provider: Provider, plan: Callable[..., Any], changed: Callable[..., Any]
) -> None:
    """One acceptance covers all that it names, and the end of the plan asks about none of it again."""
    left_in_doubt(desk, provider, plan)
    with pytest.raises(OutcomeUnknown):
        ran(desk, changed(paying(provider, "pay_out")))
    desk.answer("applied", result="by hand")
    with pytest.raises(PlanChanged, match=r"pay_out\[\d\], which has no record, where pay\[\d\] was finished"):
        ran(desk, changed(paying(provider, "pay_out")))
    assert len(provider.calls) == 2
    desk.answer("accept")
    assert len(ran(desk, changed(paying(provider, "pay_out")))) == 3
    assert len(provider.calls) == 5


@pytest.mark.usefixtures("short_lull")
@pytest.mark.parametrize("plan", [with_tasks, with_threads])
def test_another_key_for_the_same_request_is_asked_about_on_a_branch(
    desk: Desk, provider: Provider, plan: Callable[..., Any]
) -> None:
    """What makes a key is no code of the task or of the effect: it shows in a request that was applied already."""
    left_in_doubt(desk, provider, plan)
    with pytest.raises(OutcomeUnknown):
        ran(desk, plan(paying(provider)))
    desk.answer("applied", result="by hand")
    with pytest.raises(PlanChanged, match=r"pay\[x\d\], which has no record, where pay\[\d\] was finished"):
        ran(desk, plan(paying(provider, prefix="x")))
    assert sorted(amount for _, amount, _ in provider.ledger) == [7, 8, 9]


@pytest.mark.usefixtures("short_lull")
@pytest.mark.parametrize("plan", [with_tasks, with_threads])
def test_a_branch_of_an_unchanged_plan_that_is_late_is_asked_nothing(
    desk: Desk, provider: Provider, plan: Callable[..., Any]
) -> None:
    """What is in doubt there will be sent again with its key, whenever it comes."""
    left_in_doubt(desk, provider, plan, **LIFETIME)
    gate, then = late(8)
    assert len(ran(desk, plan(paying(provider, then=then, **LIFETIME), gate))) == 3
    assert sorted(amount for _, amount, _ in provider.ledger) == [7, 8, 9]


@pytest.mark.parametrize("plan", [with_tasks, with_threads])
def test_a_new_call_waits_for_the_branch_whose_call_is_in_doubt(
    desk: Desk, provider: Provider, plan: Callable[..., Any]
) -> None:
    """Only a person can tell what became of it: the plan comes to it, and asks about it itself."""
    left_in_doubt(desk, provider, plan)

    def gate(amount: int) -> None:
        """Let 8 be late, until 9 waits for it."""
        if amount == 8:
            run = this_run()
            assert run.bell.wait(lambda: run.watched, WAIT_S)

    with pytest.raises(OutcomeUnknown, match=r"Nobody knows whether pay\[8\] happened"):
        ran(desk, plan(paying(provider), gate))


@pytest.mark.usefixtures("short_lull")
@pytest.mark.parametrize("plan", [with_tasks, with_threads])
def test_what_was_applied_under_the_code_as_it_is_may_come_late(
    desk: Desk, provider: Provider, plan: Callable[..., Any]
) -> None:
    """The code was changed before that: a branch that takes its time is no other plan."""
    desk.dies(one_by_one(paying(provider, **LIFETIME)), at="send", phase="before")
    left_in_doubt(desk, provider, plan, **LIFETIME)
    gate, then = late(7)
    assert len(ran(desk, plan(paying(provider, then=then, **LIFETIME), gate))) == 3
    assert [amount for _, amount, _ in provider.ledger] == [7, 8, 9]


def this_run() -> ActiveRun:
    scope = current.get()
    assert scope is not None
    return scope.run


# ── forks ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("name", "prefix"), [("pay_out", ""), ("pay", "x"), ("pay_out", "x")])
def test_nothing_of_a_family_is_sent_again_under_another_name(
    desk: Desk, provider: Provider, name: str, prefix: str
) -> None:
    """A fork keeps what was sent after its step: what is in doubt is asked about first, then the changed plan."""
    desk.dies(one_by_one(paying(provider)), at="send", nth=2)
    fork_run(desk.store, "r", "amounts", "f", seal_key=None, clock=desk.clock, environ={})
    changed = one_by_one(paying(provider, name, prefix))
    for question, choice in ((OutcomeUnknown, "applied"), (PlanChanged, "accept")):
        with pytest.raises(question, match=rf"{name}\[{prefix}7\]"):
            desk.resume(changed, run_id="f")
        assert len(provider.calls) == 2
        desk.answer(choice, result="by hand") if choice == "applied" else desk.answer(choice)


@pytest.mark.parametrize("around", [False, True])
def test_a_fork_of_an_unchanged_plan_asks_nothing(desk: Desk, provider: Provider, around: bool) -> None:
    """Its steps are run again, and what was sent in them is found in its place."""
    pay = paying(provider, **LIFETIME)
    plan = one_by_one(in_step(pay) if around else pay)
    desk.dies(plan, at="send", nth=2)
    fork_run(desk.store, "r", "amounts", "f", seal_key=None, clock=desk.clock, environ={})
    assert len(desk.resume(plan, run_id="f")) == 3
    assert [amount for _, amount, _ in provider.ledger] == [7, 8, 9]


@pytest.mark.usefixtures("short_lull")
def test_what_a_step_sent_that_a_fork_does_not_keep_stands_all_the_same(desk: Desk, provider: Provider) -> None:
    """The plan calls the effect outside of that step now; of the step nothing is known but what was sent in it."""
    desk.dies(one_by_one(in_step(paying(provider))), at="send", nth=2)
    fork_run(desk.store, "r", "amounts", "f", seal_key=None, clock=desk.clock, environ={})
    with pytest.raises(
        OutcomeUnknown,
        match=r"pay\[x7\] has no record and may be .*, but nobody knows whether batch\[8\]/pay",
    ):
        desk.resume(one_by_one(paying(provider, prefix="x")), run_id="f")
    desk.answer("applied", result="by hand")
    with pytest.raises(PlanChanged, match=r"where batch\[\d\] was begun"):
        desk.resume(at_once(paying(provider, prefix="x")), run_id="f")
    assert len(provider.calls) == 2


# ── what changed its kind, or was accepted before ───────────────────────────────────────────────────


@pytest.mark.parametrize("was", ["step", "effect"])
def test_a_step_that_became_an_effect_of_its_name_is_asked_about_and_back(
    desk: Desk, provider: Provider, was: str
) -> None:
    """The repair that everybody makes: what wrote outside as a step becomes an effect, whose records are others."""

    @step(name="pay", key=str)
    def pay_as_step(amount: int) -> str:
        return provider.apply(str(amount), amount)

    before, after = pay_as_step, paying(provider)
    if was == "effect":
        before, after = after, before
    desk.dies_at_its_end(one_by_one(before))
    with pytest.raises(PlanChanged, match=r"pay\[7\], which has no record, where pay\[7\] was finished"):
        desk.run(one_by_one(after))
    assert len(provider.calls) == 3
    desk.answer("accept")
    assert len(desk.run(one_by_one(after))) == 3
    assert len(provider.calls) == 6


def test_a_name_that_was_accepted_is_accepted_for_the_code_as_it_was(desk: Desk, provider: Provider) -> None:
    """A person accepted a call that was inserted; later code puts that effect in the place of one that was applied."""
    pay, charge = paying(provider), paying(provider, "charge")

    @task(name="payday")
    def as_it_was() -> list[str]:
        return [pay(7), pay(8)]

    @task(name="payday")
    def inserted() -> list[str]:
        return [charge(1), pay(7), pay(8)]

    @task(name="payday")
    def replaced() -> list[str]:
        return [charge(1), pay(7), charge(8)]

    desk.dies_at_its_end(as_it_was)
    with pytest.raises(PlanChanged):
        desk.run(inserted)
    desk.answer("accept")
    desk.dies_at_its_end(inserted)
    with pytest.raises(PlanChanged, match=r"charge\[8\], which has no record, where pay\[8\] was finished"):
        desk.run(replaced)
    assert len(provider.calls) == 3


def test_what_a_person_said_was_applied_is_not_sent_in_a_step_that_was_accepted_before(
    desk: Desk, provider: Provider
) -> None:
    """The step was accepted while nobody knew; the same request goes out from it only after one more question."""
    desk.dies(one_by_one(in_step(paying(provider))), at="send", nth=1)
    new = in_step(paying(provider, "charge"), "moved")
    changed = one_by_one(new)
    with pytest.raises(PlanChanged, match=r"moved\[7\]"):
        desk.run(changed)
    desk.answer("accept")
    with pytest.raises(OutcomeUnknown, match=r"moved\[7\]/charge\[7\] has no record"):
        desk.run(changed)
    desk.answer("applied", result="by hand")
    with pytest.raises(PlanChanged, match=r"moved\[7\]/charge\[7\], which has no record, where batch\[7\] was begun"):
        desk.run(changed)
    assert len(provider.calls) == 1


# ── two steps deep ──────────────────────────────────────────────────────────────────────────────────


def test_what_was_sent_two_steps_deep_stays_sent_when_the_outer_one_is_redone(
    desk: Desk, provider: Provider, tmp_path: Path
) -> None:
    """No chain inside a verified step was read: that of its body is, and so is each inside of that."""
    orders = tmp_path / "orders.csv"
    orders.write_text("a\n")
    pay = paying(provider)

    @step
    def part() -> str:
        return pay(7)  # type: ignore[no-any-return]

    @step
    def batch(orders: Path) -> str:
        return part() + orders.read_text()

    @task(name="payday")
    def payday() -> str:
        return batch(orders)

    desk.dies_at_its_end(payday)
    orders.write_text("b\n")
    with pytest.raises(SourceChanged):
        desk.run(payday)
    desk.answer("redo")
    desk.dies(payday, at="body", nth=2, phase="before")
    assert desk.run(payday).endswith("b\n")
    assert len(provider.calls) == 1
    assert not [finding for finding in verify_run(desk.store, "r", seal_key=None, environ={}) if not finding.ok]


def test_what_was_sent_two_steps_deep_is_asked_about_where_it_is_moved_to(desk: Desk, provider: Provider) -> None:
    pay, is_moved = paying(provider), [False]

    @step
    def part() -> str:
        return "moved" if is_moved[0] else pay(7)

    @step
    def batch() -> str:
        return part()

    @task(name="payday")
    def payday() -> str:
        return batch() + (pay(7) if is_moved[0] else "")

    desk.dies_at_its_end(payday)
    is_moved[0] = True
    with pytest.raises(PlanChanged, match=r"the same effect was applied as batch/part/pay\[7\]"):
        desk.run(payday)
    assert len(provider.calls) == 1


def test_a_doubt_in_another_step_is_settled_before_the_same_effect_is_sent_from_this_one(
    desk: Desk, provider: Provider
) -> None:
    """Both steps are known, each on a branch: only name and key tell that it is the same."""
    is_lost, is_changed = threading.Event(), [False]

    def then(amount: int) -> None:
        if amount == 7:
            is_lost.set()
            raise AnswerLost

    def plan(pay: Any) -> Any:
        @step
        def first() -> None:
            pay(1)
            assert is_lost.wait(WAIT_S)
            if not is_changed[0]:
                raise LookupError
            pay(7)

        @step
        def second() -> None:
            run = this_run()
            if is_changed[0]:
                assert run.bell.wait(lambda: run.asking, WAIT_S)
            pay(7)

        @task(name="payday")
        def payday() -> str:
            with ThreadPoolExecutor(2) as pool:
                calls = [pool.submit(carry(call)) for call in (first, second)]
            for call in calls:
                call.result()
            return "paid"

        return payday

    with pytest.raises(StepFailed):
        desk.run(plan(paying(provider, then=then)))
    is_changed[0] = True
    with pytest.raises(
        OutcomeUnknown,
        match=r"first\S*/pay\[7\] has no record and may be .*, but nobody knows whether second",
    ):
        desk.run(plan(paying(provider)))
    assert sorted(amount for _, amount, _ in provider.ledger) == [1, 7]


@pytest.mark.parametrize("renamed", [False, True])
def test_what_was_accepted_and_then_sent_stands_like_anything_that_was_sent(
    desk: Desk, provider: Provider, renamed: bool
) -> None:
    """The answer let it be sent. It is none to a plan that sends it under another name, or does without it."""
    order = [7]

    def plan(pay: Any, at_last: bool = False) -> Any:
        @step
        def batch() -> list[str]:
            return [pay(amount) for amount in order]

        @task(name="payday")
        def payday() -> list[str]:
            return batch() if at_last else [pay(amount) for amount in order]

        return payday

    desk.dies_at_its_end(plan(paying(provider)))
    order[:] = [8, 7]
    with pytest.raises(PlanChanged, match=r"The plan calls pay\[8\], which has no record, where pay\[7\] was"):
        desk.run(plan(paying(provider)))
    desk.answer("accept")
    desk.dies_at_its_end(plan(paying(provider)))
    if renamed:
        order[:] = [8]
        changed = plan(paying(provider, "pay_out", "x"), at_last=True)
        with pytest.raises(PlanChanged, match="batch, which has no record"):
            desk.run(changed)
        desk.answer("accept")
        found = r"batch/pay_out\[x8\], which has no record, where pay\[8\] was finished"
    else:
        order[:] = [7]
        changed, found = plan(paying(provider)), r"pay\[8\] was finished before, but the plan"
    with pytest.raises(PlanChanged, match=found):
        desk.run(changed)
    assert [amount for _, amount, _ in provider.ledger] == [7, 8]


@pytest.mark.parametrize("keyed", [False, True])
def test_the_same_place_of_another_item_is_no_other_place(desk: Desk, provider: Provider, keyed: bool) -> None:
    """Each step orders, without a key or at the one supplier: an unchanged plan is asked nothing, killed or not."""

    @effect(name="order", key=(lambda amount: "the supplier") if keyed else None)
    def order(key: Key, amount: int) -> str:
        return provider.apply(key, amount)

    plan = one_by_one(in_step(order))
    assert len(desk.run(plan, run_id="undisturbed")) == 3
    desk.dies(plan, at="append:step_verified", nth=3, settled=True)
    assert len(desk.run(plan)) == 3
    assert len(provider.calls) == 6
