"""What a promotion binds: the role that people approved, evidence that is there, and that it holds when it counts."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from promoting import answer, shadowed

from milepost import Key, Limits, current_run, effect, sleep, step, task
from milepost.errors import ApprovalNeeded, BadName, MisuseError, NotPromoted, StepFailed, VersionsChanged
from milepost.protocol.spec import TaskSpec
from milepost.runtime.active import RunOptions
from milepost.runtime.check import check_run
from milepost.runtime.promoted import COMPARISON, PROMOTION
from milepost.shadow.evidence import Comparison, keep_report, kept, over_time
from milepost.shadow.promotion import Case, case_for, promotion, promotion_id, said
from milepost.shadow.report import report
from milepost.stores.contract import Store
from milepost.stores.memory import MemoryStore

SENT: list[str] = []
DIES: list[str] = []


class Died(Exception):
    """The run stops here."""


def a_role(
    *,
    send: Any = None,
    books: dict[str, Any] | None = None,
    checks: dict[str, Any] | None = None,
    at_run_time: Any = None,
    **options: Any,
) -> Any:
    """Return a task that checks, books and pays; what is given changes one of its declarations."""

    def book_plainly(key: Key, number: str, amount: str) -> None:
        SENT.append(f"book {number} {amount}")

    def check(amount: str) -> str:
        if amount in DIES:
            raise Died
        return amount

    book = effect(name="book", key=lambda number, amount: number, **(books or {}))(send or book_plainly)
    checked = step(name="check", **(checks or {}))(check)

    @effect(key=lambda number, amount: number)
    def pay(key: Key, number: str, amount: str) -> None:
        SENT.append(f"pay {number} {amount}")

    def bookkeeper(amount: str = "1") -> int:
        if at_run_time is not None:
            current_run().effect("tell", at_run_time, key=lambda number: number)("INV-1")
        book("INV-1", checked(amount))
        pay("INV-1", "1000")
        return 1

    return task(**{"shadow_first": 1, "agreement": 0.9, **options})(bookkeeper)


@pytest.fixture
def store() -> MemoryStore:
    SENT.clear()
    DIES.clear()
    return MemoryStore()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "done.csv"
    path.write_text("effect,number,amount\nbook,INV-1,1\npay,INV-1,1000\n")
    return path


def asked(store: Store, plan: Any) -> str:
    """Ask for a promotion; return the id of its run."""
    case = case_for(plan.spec, store)
    with pytest.raises(ApprovalNeeded):
        promotion.options(store=store).run(promotion_id(case), case)
    return promotion_id(case)


def promoted(store: Store, plan: Any, file: Path) -> Any:
    shadowed(store, plan, "dry", file)
    name = asked(store, plan)
    answer(store)
    promotion.options(store=store).resume(name)
    return plan


# ── the role ────────────────────────────────────────────────────────────────────────────────────────


def double(key: Key, number: str, amount: str) -> None:
    SENT.append(f"book {number} {2 * int(amount)}")


def is_text(amount: str) -> bool:
    return bool(amount)


CHANGES = [
    ({"send": double}, "effect book: code [0-9a-f]+ → [0-9a-f]+"),
    ({"books": {"approve": "before"}}, "effect book: approval none → 1 of anybody but the agent"),
    ({"books": {"permission": "book"}, "permissions": ["book"]}, "effect book: permission none → book, permissions"),
    ({"books": {"provider": "elsewhere"}}, "effect book: provider .* → elsewhere"),
    ({"books": {"key_lifetime": timedelta(days=1)}}, "effect book: key_lifetime none → 1 day"),
    ({"checks": {"review": "after", "approvers": ["ana"]}}, "step check: review none → 1 of ana"),
    ({"books": {"unwatched": ["amount"]}}, "effect book: unwatched none → amount"),
    ({"checks": {"verify": is_text}}, "step check: verified by none → is_text"),
    ({"permissions": ["everything"]}, "permissions none → everything"),
    ({"limits": Limits(tokens=5)}, "limits none → .*tokens.*5"),
    ({"shadow_first": 2}, "shadow_first 1 → 2"),
    ({"agreement": 0.5}, r"agreement 0.9 → 0.5"),
    ({"model": "another"}, "model none → another"),
    ({"instructions": "Book everything twice."}, "instructions none → "),
]


@pytest.mark.parametrize(("change", "expected"), CHANGES, ids=[" ".join(change) for change, _ in CHANGES])
def test_another_role_than_the_promoted_one_does_not_start_live(
    store: MemoryStore, file: Path, change: dict[str, Any], expected: str
) -> None:
    """What people approved is a role; code, policy, permissions and limits that differ are another one, by name."""
    promoted(store, a_role(), file)
    with pytest.raises(NotPromoted, match=f"not what promotion-.* promoted: {expected}"):
        a_role(**change).options(store=store).run("live")
    assert (SENT, store.run("live")) == ([], None)
    a_role().options(store=store).run("live")
    assert SENT == ["book INV-1 1", "pay INV-1 1000"]


def test_shadow_runs_of_other_code_do_not_count(store: MemoryStore, file: Path) -> None:
    """The plan is the same, an effect is another: these shadow runs say nothing about it."""
    shadowed(store, a_role(), "dry", file)
    with pytest.raises(NotPromoted, match="1 were of other versions"):
        case_for(a_role(send=double).spec, store)


def test_a_run_under_way_asks_before_it_goes_on_in_another_role(store: MemoryStore, file: Path) -> None:
    plan = promoted(store, a_role(), file)
    DIES.append("1")
    with pytest.raises(StepFailed):
        plan.options(store=store).run("live")
    DIES.clear()
    changed = a_role(send=double, on_version_change="record")
    foreseen = check_run(changed.spec, "live", store, RunOptions(store=store))
    assert [finding.state for finding in foreseen if finding.rule == "Versions"] == ["ask"]
    with pytest.raises(VersionsChanged, match="since the promotion: effect book: code"):
        changed.options(store=store).resume("live")
    assert SENT == []
    answer(store, "accept")
    assert changed.options(store=store).resume("live") == 1
    assert SENT == ["book INV-1 2", "pay INV-1 1000"]


def told(key: Key, number: str) -> None:
    SENT.append(f"told {number}")


def told_twice(key: Key, number: str) -> None:
    SENT.append(f"told {number} twice")


def test_what_is_known_only_at_run_time_is_compared_when_it_is_called(
    store: MemoryStore, file: Path, tmp_path: Path
) -> None:
    file.write_text(file.read_text() + "tell,INV-1,\n")
    promoted(store, a_role(at_run_time=told), file)
    a_role(at_run_time=told).options(store=store).run("live")
    assert SENT == ["told INV-1", "book INV-1 1", "pay INV-1 1000"]
    SENT.clear()
    changed = a_role(at_run_time=told_twice)
    with pytest.raises(VersionsChanged, match=r"tell\[INV-1\] is not as it was promoted .*effect tell: code"):
        changed.options(store=store).run("other")
    assert SENT == []
    answer(store, "accept")
    changed.options(store=store).resume("other")
    assert SENT[0] == "told INV-1 twice"


def inner_of(factor: int) -> Any:
    if factor == 1:

        def inner(amount: str) -> str:
            return amount

    else:

        def inner(amount: str) -> str:
            return str(int(amount) * 2)

    return step(inner)


def an_async_role(factor: int = 1) -> Any:
    """Return a task whose book step waits and calls a step inside a step; `factor` 2 changes the inner one."""
    inner = inner_of(factor)

    @step
    async def outer(amount: str) -> str:
        return str(await inner.aio(amount))

    @effect(key=lambda number, amount: number)
    async def book(key: Key, number: str, amount: str) -> None:
        SENT.append(f"book {number} {amount}")

    async def bookkeeper(amount: str = "1") -> int:
        await sleep.aio(0)
        await book("INV-1", await outer(amount))
        return 1

    return task(shadow_first=1)(bookkeeper)


def test_what_runs_inside_a_step_is_bound_too(store: MemoryStore, file: Path) -> None:
    file.write_text("effect,number,amount\nbook,INV-1,1\n")
    plan = an_async_role()
    asyncio.run(plan.options(store=store, shadow=True).run("dry"))
    keep_report(store, report(store, "dry", against=str(file)))
    name = asked(store, plan)
    answer(store)
    promotion.options(store=store).resume(name)
    with pytest.raises(NotPromoted, match=r"step inner: code"):
        asyncio.run(an_async_role(2).options(store=store).run("live"))
    assert asyncio.run(plan.options(store=store).run("live")) == 1
    assert SENT == ["book INV-1 1"]


# ── evidence ────────────────────────────────────────────────────────────────────────────────────────


def test_a_promotion_does_not_hold_when_a_newer_shadow_run_disagrees_before_it_counts(
    store: MemoryStore, file: Path
) -> None:
    """Approved is what it rests on; whoever resumes the run of the promotion, `promote` or a watch."""
    plan = a_role()
    shadowed(store, plan, "dry-1", file)
    name = asked(store, plan)
    shadowed(store, plan, "dry-2", file, "7")
    answer(store)
    for _ in range(2):
        with pytest.raises(NotPromoted, match=r"rests on has changed: dry-2 agrees to 50.00%"):
            promotion.options(store=store).resume(name)
    with pytest.raises(NotPromoted, match="no promotion"):
        plan.options(store=store).run("live")
    assert SENT == []


def test_a_newer_shadow_run_that_agrees_changes_nothing(store: MemoryStore, file: Path) -> None:
    plan = a_role()
    shadowed(store, plan, "dry-1", file)
    name = asked(store, plan)
    shadowed(store, plan, "dry-2", file)
    answer(store)
    promotion.options(store=store).resume(name)
    assert plan.options(store=store).run("live") == 1


def test_what_leaves_effects_out_does_not_count_and_says_so(store: MemoryStore, file: Path) -> None:
    plan = a_role()
    plan.options(store=store, shadow=True).run("dry")
    made = report(store, "dry", against=str(file), effect="book")
    assert (made.agreement, made.left_out) == (1.0, ["pay"])
    keep_report(store, made)
    assert [one.void for one in kept(store, "bookkeeper")] == ["not compared: pay"]
    with pytest.raises(NotPromoted, match="dry: not compared: pay"):
        case_for(plan.spec, store)
    found = over_time(store, "bookkeeper")
    assert (found["compared_count"], found["runs"][0]["void"]) == (0, "not compared: pay")


def test_what_does_not_count_takes_nothing_from_an_earlier_comparison(store: MemoryStore, file: Path) -> None:
    plan = a_role()
    first = shadowed(store, plan, "dry", file, "7")
    keep_report(store, report(store, "dry", against=str(file), effect="pay"))
    assert [(one.comparison_id, one.found.agreement) for one in kept(store, "bookkeeper")] == [(first, 0.5)]


def test_an_effect_that_is_nowhere_is_refused_by_name(store: MemoryStore, file: Path) -> None:
    a_role().options(store=store, shadow=True).run("dry")
    for against in (None, str(file)):
        with pytest.raises(MisuseError, match=r"no effect 'nothere' .*there: book, pay"):
            report(store, "dry", against=against, effect="nothere")


def test_fields_that_nothing_was_compared_with_are_in_the_sentence(store: MemoryStore, file: Path) -> None:
    """A list of numbers agrees with every amount: whoever approves must see that none was compared."""
    file.write_text("effect,number\nbook,INV-1\npay,INV-1\n")
    shadowed(store, a_role(), "dry", file)
    assert said(case_for(a_role().spec, store)).endswith("2 agreed with what was done; not compared: amount.")


def test_a_field_that_one_write_alone_was_not_compared_in_is_in_the_sentence(
    store: MemoryStore, tmp_path: Path
) -> None:
    """That others were compared in it says nothing of this one."""
    file = tmp_path / "done.jsonl"
    rows = [{"effect": "book", "number": "INV-1", "amount": "1"}, {"effect": "pay", "number": "INV-1"}]
    file.write_text("\n".join(map(json.dumps, rows)))
    shadowed(store, a_role(), "dry", file)
    assert said(case_for(a_role().spec, store)).endswith("2 agreed with what was done; not compared: amount.")


def test_a_shadow_run_is_not_what_was_done(store: MemoryStore, file: Path) -> None:
    plan = a_role()
    for name in ("dry", "again"):
        plan.options(store=store, shadow=True).run(name)
        made = report(store, name, against="dry")
        assert made.agreement == 1.0
        with pytest.raises(MisuseError, match="run dry is a shadow run, it did nothing"):
            keep_report(store, made)
    promoted(store, plan, file).options(store=store).run("live")
    keep_report(store, report(store, "again", against="live"))
    assert {one.found.against: one.void for one in kept(store, "bookkeeper")} == {"run live": "", "done.csv": ""}


# ── what is written by others ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", [PROMOTION, COMPARISON, "milepost-mine"])
def test_names_of_our_tasks_are_kept_for_them(name: str) -> None:
    with pytest.raises(BadName, match="kept for Milepost's own tasks"):
        task(name=name)(a_role)


def disguised(plan: Any, name: str) -> Any:
    """Return a task under a name of ours, as a store of before may have run one."""
    spec: TaskSpec = replace(plan.spec, name=name)
    return type(plan)(spec)


def test_an_approved_step_of_another_task_is_no_promotion(store: MemoryStore) -> None:
    """Somebody said yes to lunch."""

    @step(approve="before", summary="Order lunch?")
    def promote(x: int) -> dict[str, Any]:
        return {"task": "bookkeeper", "role": {}, "seen": {}}

    @task
    def lunch(x: int = 1) -> dict[str, Any]:
        return promote(x)

    forged = disguised(lunch, PROMOTION).options(store=store)
    with pytest.raises(ApprovalNeeded):
        forged.run("lunch")
    answer(store)
    forged.resume("lunch")
    with pytest.raises(NotPromoted, match="no promotion"):
        a_role().options(store=store).run("live")
    assert SENT == []


def test_an_approval_of_something_else_about_the_case_is_no_promotion(store: MemoryStore, file: Path) -> None:
    shadowed(store, a_role(), "dry", file)

    @step(approve="before", summary="File the report?")
    def promote(case: Case) -> Case:
        return case

    @task
    def filing(case: Case) -> Case:
        return promote(case)

    forged = disguised(filing, PROMOTION).options(store=store)
    with pytest.raises(ApprovalNeeded):
        forged.run("filing", case_for(a_role().spec, store))
    answer(store)
    forged.resume("filing")
    with pytest.raises(NotPromoted, match="no promotion"):
        a_role().options(store=store).run("live")


def test_a_promotion_that_nobody_was_asked_about_is_none(store: MemoryStore, file: Path) -> None:
    shadowed(store, a_role(), "dry", file)

    @step
    def promote(case: Case) -> Case:
        return case

    @task
    def by_itself(case: Case) -> Case:
        return promote(case)

    disguised(by_itself, PROMOTION).options(store=store).run("promotion-1", case_for(a_role().spec, store))
    with pytest.raises(NotPromoted, match="no promotion"):
        a_role().options(store=store).run("live")


def test_a_comparison_with_shadow_runs_that_never_were_does_not_count(store: MemoryStore, file: Path) -> None:
    shadowed(store, a_role(), "dry", file)
    (real,) = kept(store, "bookkeeper")

    @step
    def keep(found: Comparison) -> Comparison:
        return found

    @task
    def made_up(found: Comparison) -> Comparison:
        return keep(found)

    @task
    def of_another_shape(i: int) -> dict[str, Any]:
        return {"task": "bookkeeper", "run_id": f"dry-{i}", "agreed": 200}

    forged = replace(real.found, run_id="never", agreed=200)
    disguised(made_up, COMPARISON).options(store=store).run("comparison-1", forged)
    disguised(of_another_shape, COMPARISON).options(store=store).run("comparison-2", 1)
    voids = {one.found.run_id: one.void for one in kept(store, "bookkeeper")}
    assert voids == {"dry": "", "never": "its shadow run is not in this store"}
    with pytest.raises(NotPromoted, match=r"1 of 2 .* 1 do not count .never: its shadow run is not in this store"):
        case_for(a_role(shadow_first=2).spec, store)
