"""Shadow runs: everything runs, nothing is sent, each effect that would have been is recorded with its full request."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from desk import Death, Desk
from posting import posting
from provider import Provider

from milepost import Applied, Key, StepFailed, effect, step, task
from milepost.errors import (
    BadOption,
    CorruptRecord,
    NotEncodable,
    PermissionMissing,
    RunEnded,
    ShadowDiffers,
    ShadowResultNeeded,
    UndeclaredWrite,
)
from milepost.records.model import EffectShadowed
from milepost.runtime import crash
from milepost.runtime.active import RunOptions
from milepost.runtime.check import check_run
from milepost.stores.memory import MemoryStore

INVOICES = ["INV-1", "INV-2", "INV-3"]


def month(provider: Provider, *, shadow: Any = ..., scope: str = "run", at_once: int = 2) -> Any:
    """Return a task that posts three invoices inside a step, at most two at once, and mails a report."""

    @effect(provider="accounting", key=lambda invoice: invoice, shadow=shadow, scope=scope)  # type: ignore[call-overload, untyped-decorator]
    def post(key: Key, invoice: str) -> str:
        return provider.apply(key, invoice)

    @effect(provider="mail")
    def mail(key: Key, text: str) -> None:
        provider.apply(key, text)

    @step
    def post_all() -> list[str]:
        return post.map(INVOICES, concurrency=at_once)

    @task
    def reconcile_shadowed() -> list[str]:
        found = post_all()
        mail(f"{len(found)} posted")
        return found

    return reconcile_shadowed


def shadowed(desk: Desk, run_id: str = "r") -> list[EffectShadowed]:
    return desk.records("effect_shadowed", run_id=run_id)


def request_of(desk: Desk, record: EffectShadowed) -> Any:
    data = desk.store.artifacts("r", [record.request.digest])[record.request.digest].data
    assert data is not None
    return json.loads(data)


def test_nothing_is_sent_and_every_effect_is_recorded_with_its_request(desk: Desk) -> None:
    """The whole promise: what people compare with what they did themselves."""
    provider = Provider(desk.clock)
    result = desk.run(month(provider, shadow=lambda invoice: f"would-be {invoice}"), shadow=True)
    assert result == [f"would-be {name}" for name in INVOICES]
    assert provider.calls == []
    noted = {record.path: record for record in shadowed(desk)}
    assert sorted(noted) == ["mail", *(f"post_all/post[{name}]" for name in INVOICES)]
    one = noted["post_all/post[INV-2]"]
    assert (one.provider, one.item_key, one.effect) == ("accounting", "INV-2", "post")
    assert request_of(desk, one) == {"arguments": {"invoice": "INV-2"}}
    assert desk.records("intent_recorded", "outcome_recorded") == []
    row = desk.store.run("r")
    assert row is not None
    assert (row.shadow, row.progress.applied_count) == (True, 0)


def test_the_key_is_the_one_a_live_run_of_this_id_would_use(desk: Desk) -> None:
    provider = Provider(desk.clock)
    plan = posting(provider, shadow="receipt")
    desk.run(plan, "INV-7", shadow=True)
    plan.options(store=MemoryStore(), clock=desk.clock).run("r", "INV-7")
    assert [record.key for record in shadowed(desk)] == provider.calls


def test_a_shared_key_is_not_claimed(desk: Desk) -> None:
    """A live run afterwards owns the key as if nothing had been."""
    provider = Provider(desk.clock)
    plan = month(provider, shadow="x", scope="task")
    desk.run(plan, run_id="dry", shadow=True)
    desk.run(plan, run_id="wet")
    assert len(provider.ledger) == 4


def test_a_permission_is_noted(desk: Desk) -> None:
    desk.run(posting(Provider(desk.clock), shadow="x", permission="accounting:write"), "INV-7", shadow=True)
    assert shadowed(desk)[0].permission == "accounting:write"


@pytest.mark.parametrize("given", [Applied("receipt", ref="7"), "receipt"])
def test_shadow_may_be_a_value_or_a_function_of_the_arguments(desk: Desk, given: Any) -> None:
    supplied: Callable[[str, int], Any] = lambda invoice, amount: given  # noqa: E731
    plan = posting(Provider(desk.clock), shadow="receipt" if given == "receipt" else supplied)
    assert desk.run(plan, "INV-7", shadow=True) == "receipt"


@pytest.mark.parametrize("bad", [lambda: 1, lambda a, b, c: 1])
def test_a_shadow_that_does_not_take_the_arguments_is_refused_at_once(desk: Desk, bad: Any) -> None:
    with pytest.raises(BadOption, match="shadow="):
        posting(Provider(desk.clock), shadow=bad)


def test_an_async_shadow_and_a_value_of_another_type_are_refused_at_once() -> None:
    async def later(invoice: str) -> str:
        return invoice

    def post(key: Key, invoice: str) -> str:
        return invoice

    with pytest.raises(BadOption, match="async"):
        effect(shadow=later)(post)
    with pytest.raises(NotEncodable):
        effect(shadow=7)(post)


def test_a_shadow_that_raises_fails_the_run_and_runs_again_on_resume(desk: Desk) -> None:
    broken = [True]

    def supply(invoice: str, amount: int) -> str:
        if broken[0]:
            raise ValueError("no receipt yet")
        return "receipt"

    plan = posting(Provider(desk.clock), shadow=supply)
    with pytest.raises(StepFailed, match=r"shadow=.*no receipt yet"):
        desk.run(plan, "INV-7", shadow=True)
    broken[0] = False
    assert desk.resume(plan) == "receipt"


# ── a person gives the result ───────────────────────────────────────────────────────────────────────


def asking(desk: Desk) -> tuple[Provider, Any]:
    provider = Provider(desk.clock)
    plan = month(provider)
    with pytest.raises(ShadowResultNeeded, match="was not sent"):
        desk.run(plan, shadow=True)
    return provider, plan


def test_without_shadow_the_run_asks_for_the_result_and_goes_on_with_it(desk: Desk) -> None:
    provider, plan = asking(desk)
    while desk.questions:
        for question in desk.questions:
            desk.answer("give", result="by hand", question=question)
        try:
            result = desk.resume(plan)
        except ShadowResultNeeded:
            continue
    assert result == ["by hand"] * 3
    assert provider.calls == []


def test_what_does_not_fit_is_asked_again(desk: Desk) -> None:
    """Items of a map run beside each other: how many have asked when the first stops the run is left to chance."""
    _, plan = asking(desk)
    wrong = desk.questions
    for question in wrong:
        desk.answer("give", result=7, question=question)
    with pytest.raises(ShadowResultNeeded):
        desk.resume(plan)
    assert 1 <= sum("expected" in asked.sentence for asked in desk.questions) <= len(wrong)


def test_again_asks_a_shadow_that_was_added_meanwhile(desk: Desk) -> None:
    """What the run has cost so far is not lost because an option was missing."""
    provider, _ = asking(desk)
    for question in desk.questions:
        desk.answer("again", question=question)
    assert desk.resume(month(provider, shadow="added")) == ["added"] * 3


def test_stop_ends_the_run(desk: Desk) -> None:
    _, plan = asking(desk)
    desk.answer("stop", question=desk.questions[0])
    for question in desk.questions:
        desk.answer("stop", question=question)
    with pytest.raises(RunEnded):
        desk.resume(plan)


# ── for ever ────────────────────────────────────────────────────────────────────────────────────────


def test_a_shadow_run_is_resumed_as_one_and_never_continued_live(desk: Desk) -> None:
    provider = Provider(desk.clock)
    plan = month(provider, shadow="x")
    desk.dies(shadow_of(plan), at="append:effect_shadowed", phase="done", nth=2)
    with pytest.raises(ShadowDiffers, match=r"is a shadow run.*as a live run"):
        desk.run(plan)
    assert desk.resume(plan) == ["x"] * 3
    assert provider.calls == []
    with pytest.raises(ShadowDiffers):
        desk.run(plan)


def test_a_live_run_is_never_continued_as_a_shadow(desk: Desk) -> None:
    plan = posting(Provider(desk.clock), shadow="x")
    desk.run(plan, "INV-7")
    for go_on in (lambda: desk.run(plan, "INV-7", shadow=True), lambda: desk.resume(plan, shadow=True)):
        with pytest.raises(ShadowDiffers, match=r"is a live run.*as a shadow run"):
            go_on()


def shadow_of(plan: Any) -> Any:
    """Return a plan whose `.options(…)` keep it a shadow."""

    class Shadow:
        def options(self, **more: Any) -> Any:
            return plan.options(**more, shadow=True)

    return Shadow()


@pytest.mark.parametrize("phase", ["before", "done", "durable"])
def test_a_death_around_the_record_repeats_nothing_and_loses_nothing(desk: Desk, phase: str) -> None:
    plan = posting(Provider(desk.clock), shadow="x")
    desk.dies(shadow_of(plan), "INV-7", at="append:effect_shadowed", phase=phase)
    assert desk.resume(plan) == "x" if desk.records() else desk.run(plan, "INV-7", shadow=True)
    assert len(shadowed(desk)) == 1


def test_another_request_on_resume_is_recorded_anew(desk: Desk) -> None:
    """Nothing was sent that it could contradict: no question."""
    amounts = [10]
    plan = posting(Provider(desk.clock), shadow="x", amount=lambda: amounts[0])
    desk.dies(shadow_of(plan), "INV-7", at="append:run_ended", phase="before", settled=True)
    amounts[0] = 12
    desk.resume(plan)
    assert [request_of(desk, record)["arguments"]["amount"] for record in shadowed(desk)] == [10, 12]


def test_a_fork_of_a_shadow_run_is_one(desk: Desk) -> None:
    from milepost import fork

    plan = month(Provider(desk.clock), shadow="x")
    desk.run(plan, shadow=True)
    fork("r", from_step="post_all", to="again", store=desk.store)
    row = desk.store.run("again")
    assert row is not None
    assert row.shadow
    assert desk.resume(plan, run_id="again") == ["x"] * 3
    with pytest.raises(ShadowDiffers):
        desk.run(plan, run_id="again")


def test_asynchronous_effects_are_shadowed_alike(desk: Desk) -> None:
    provider = Provider(desk.clock)

    @effect(shadow=lambda invoice: f"would-be {invoice}", key=lambda invoice: invoice)
    async def post_later(key: Key, invoice: str) -> str:
        return provider.apply(key, invoice)

    @effect(shadow="kept")
    def keep(key: Key) -> str:
        return provider.apply(key, "kept")

    @task
    async def reconcile_later() -> list[str]:
        return [*await post_later.map(INVOICES, concurrency=2), await keep.aio()]

    ready = reconcile_later.options(**desk.options(shadow=True))
    assert asyncio.run(ready.run("r")) == [*(f"would-be {name}" for name in INVOICES), "kept"]
    assert provider.calls == []
    assert len(shadowed(desk)) == 4


# ── what else holds ─────────────────────────────────────────────────────────────────────────────────


def test_a_death_at_every_point_leads_to_the_same_records(tmp_path: Path) -> None:
    """Whatever was done or durable when the process died: each effect is recorded, none is sent."""
    undisturbed, passed = at_point(tmp_path, None)
    for number in range(1, passed + 1):
        assert at_point(tmp_path, number)[0] == undisturbed


def at_point(folder: Path, number: int | None) -> tuple[object, int]:
    """Run a shadow that dies at the n-th crash point and is started again; return what is recorded, and the points."""
    desk = Desk(MemoryStore(), folder)
    provider, passed = Provider(desk.clock), 0
    plan = month(provider, shadow="x", at_once=1)

    def reached(label: str, phase: str) -> None:
        nonlocal passed
        passed += 1
        if passed == number:
            desk.next_process()
        if number is not None and passed >= number:
            raise Death

    crash.armed = reached
    try:
        with suppress(Death):
            desk.run(plan, shadow=True)
    finally:
        crash.armed = None
        desk._forget_what_the_dead_said() if number is not None else None
    result = desk.run(plan, shadow=True)
    assert provider.calls == []
    return (result, sorted((r.path, r.key, r.request_digest) for r in shadowed(desk))), passed


def test_a_row_that_was_made_a_live_one_is_refused(desk: Desk) -> None:
    """Whoever can write to the database cannot turn a shadow live."""
    plan = month(Provider(desk.clock))
    with pytest.raises(ShadowResultNeeded):
        desk.run(plan, shadow=True)
    if isinstance(desk.store, MemoryStore):
        desk.store._runs["r"].row = replace(desk.store._runs["r"].row, shadow=False)
    else:
        with sqlite3.connect(desk.store.location) as database:
            database.execute("UPDATE runs SET shadow = 0")
        database.close()
    with pytest.raises(CorruptRecord, match="shadow run"):
        desk.run(plan)


def test_approvals_are_noted_and_not_asked(desk: Desk) -> None:
    @effect(approve="before", approvers=("finance",), approvals=2, shadow="receipt")
    def pay(key: Key, amount: int) -> str:
        raise AssertionError("sent")

    @step(approve="before", review="after")
    def reviewed() -> int:
        return 3

    @task
    def careful() -> str:
        return pay(reviewed())

    assert desk.run(careful, shadow=True) == "receipt"
    assert desk.store.questions(closed=True) == []
    assert shadowed(desk)[0].would_ask == "2 of finance"


def test_a_missing_permission_is_refused_in_a_shadow_too(desk: Desk) -> None:
    """It would be the first thing to happen live."""
    plan = posting(Provider(desk.clock), shadow="x", permission="bank:pay")
    with pytest.raises(PermissionMissing):
        desk.run(plan, "INV-7", shadow=True)


def test_a_check_says_what_would_be_noted(desk: Desk) -> None:
    plan = posting(Provider(desk.clock), shadow="x")
    desk.dies(shadow_of(plan), "INV-7", at="append:effect_shadowed", phase="before", settled=True)
    findings = check_run(plan.spec, "r", desk.store, RunOptions(clock=desk.clock))
    assert any("nothing is sent" in finding.found for finding in findings)
    assert shadowed(desk) == []


def test_an_effect_called_plainly_sends_nothing_either(desk: Desk) -> None:
    """`.plain` records nothing; in a shadow run the guard would not hear of a library that is connected already."""
    sent: list[str] = []

    @effect()
    def post(key: Key, invoice: str) -> None:
        sent.append(invoice)

    @step
    def posts_by_itself() -> None:
        with suppress(UndeclaredWrite):
            post.plain(Key("k"), "INV-1")

    @task
    def plainly() -> None:
        posts_by_itself()

    with pytest.raises(UndeclaredWrite, match=r"sending post\.plain\(…\) is refused at .*test_shadow\.py:\d+"):
        desk.run(plainly, shadow=True)
    assert sent == []
