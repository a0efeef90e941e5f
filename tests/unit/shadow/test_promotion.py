"""From shadow runs that agree to a live one: evidence that is kept, a case a person approves, and what undoes it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from promoting import answer, shadowed

from milepost import Key, effect, task
from milepost.errors import (
    ApprovalNeeded,
    CorruptRecord,
    Declined,
    MilepostError,
    MisuseError,
    NotPromoted,
)
from milepost.shadow.evidence import keep_report, kept, over_time
from milepost.shadow.promotion import case_for, promotion, promotion_id, said
from milepost.shadow.report import report
from milepost.stores.contract import Store
from milepost.stores.memory import MemoryStore

SENT: list[str] = []


@effect(provider="accounting", key=lambda number, amount: number, shadow="receipt")
def book(key: Key, number: str, amount: str) -> str:
    SENT.append(number)
    return "receipt"


def role(**options: Any) -> Any:
    """Return a task that books two invoices and may run live after two agreeing shadow runs."""

    def book_all(amount: str = "10.00") -> int:
        book("INV-1", amount)
        return 1

    return task(name="bookkeeper", shadow_first=2, agreement=0.9, **options)(book_all)


@pytest.fixture
def store() -> MemoryStore:
    SENT.clear()
    return MemoryStore()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return what people did: one booking of 10.00."""
    path = tmp_path / "booked.csv"
    path.write_text("number,amount\nINV-1,10\n")
    return path


def promoted(store: Store, plan: Any) -> Any:
    case = case_for(plan.spec, store)
    return promotion.options(store=store).run(promotion_id(case), case)


@pytest.fixture
def live(store: MemoryStore, file: Path) -> Any:
    """Return a task that was promoted, in its store."""
    plan = role()
    for name in ("dry-1", "dry-2"):
        shadowed(store, plan, name, file)
    with pytest.raises(ApprovalNeeded):
        promoted(store, plan)
    answer(store)
    promoted(store, plan)
    return plan


def test_a_live_run_is_refused_until_the_task_is_promoted(store: MemoryStore, file: Path) -> None:
    """By name, with what is missing; nothing of the run is left behind."""
    plan = role()
    with pytest.raises(NotPromoted, match=r"bookkeeper.*needed: 2 in a row.*90\.00%.*found: 0 done"):
        plan.options(store=store).run("live")
    assert store.run("live") is None
    shadowed(store, plan, "dry-1", file)
    with pytest.raises(NotPromoted, match="found: 1 done, 1 of them compared"):
        plan.options(store=store).run("live")
    with pytest.raises(NotPromoted, match="1 of 2 shadow runs in a row"):
        case_for(plan.spec, store)


def test_after_promotion_it_runs_live_and_says_by_which(store: MemoryStore, live: Any) -> None:
    assert SENT == []
    assert live.options(store=store).run("live") == 1
    assert SENT == ["INV-1"]
    started = json.loads(store.records("live")[0].body)
    assert started["promotion"].startswith("promotion-bookkeeper-")
    live.options(store=store, shadow=True).run("dry-3")  # always possible
    assert SENT == ["INV-1"]


def test_the_case_is_what_the_person_is_shown(store: MemoryStore, file: Path) -> None:
    plan = role()
    ids = [shadowed(store, plan, name, file) for name in ("dry-1", "dry-2")]
    case = case_for(plan.spec, store)
    assert {run.comparison_id for run in case.runs} == set(ids)
    assert plan.spec.versions().items() <= case.role["task"].items()
    assert case.role["effect book"]["provider"] == "accounting"
    assert "of 2 writes in its newest shadow runs (2), 2 agreed" in said(case)
    with pytest.raises(ApprovalNeeded, match="bookkeeper turns live"):
        promoted(store, plan)


def test_a_declined_promotion_stays_declined(store: MemoryStore, file: Path) -> None:
    plan = role()
    for name in ("dry-1", "dry-2"):
        shadowed(store, plan, name, file)
    with pytest.raises(ApprovalNeeded):
        promoted(store, plan)
    answer(store, "decline")
    for _ in range(2):
        with pytest.raises(Declined):
            promoted(store, plan)
    with pytest.raises(NotPromoted):
        plan.options(store=store).run("live")


def test_a_run_that_disagrees_breaks_the_row(store: MemoryStore, file: Path) -> None:
    """Five that agreed last year do not outweigh the one of yesterday."""
    plan = role()
    for name in ("dry-1", "dry-2"):
        shadowed(store, plan, name, file)
    shadowed(store, plan, "dry-3", file, "11.00")
    with pytest.raises(NotPromoted, match="0 of 2 shadow runs in a row"):
        case_for(plan.spec, store)


def test_shadow_runs_of_other_versions_do_not_count(store: MemoryStore, file: Path) -> None:
    for name in ("dry-1", "dry-2"):
        shadowed(store, role(), name, file)
    with pytest.raises(NotPromoted, match="2 were of other versions"):
        case_for(role(model="another").spec, store)


def test_a_comparison_of_a_run_that_went_on_since_does_not_count(store: MemoryStore, file: Path) -> None:
    plan = role()
    shadowed(store, plan, "dry-1", file)
    plan.options(store=store, shadow=True).run("dry-2")
    made = report(store, "dry-2", against=str(file))
    keep_report(store, replace(made, head="0" * 64))
    assert [one.stands for one in kept(store, "bookkeeper")] == [False, True]
    with pytest.raises(NotPromoted, match=r"1 do not count .dry-2: changed since"):
        case_for(plan.spec, store)


def test_a_promotion_that_was_altered_is_no_promotion(store: MemoryStore, live: Any) -> None:
    """Nobody promotes a task by writing into the database."""
    (row,) = store.runs(task="milepost-promotion")
    line = store._runs[row.run_id].records[0]
    store._runs[row.run_id].records[0] = line._replace(body=line.body.replace(b"promotion", b"promotiom"))
    with pytest.raises(CorruptRecord):
        live.options(store=store).run("live")


def test_only_what_compares_a_done_shadow_run_is_kept(store: MemoryStore, file: Path) -> None:
    plan = role()
    plan.options(store=store, shadow=True).run("dry")
    with pytest.raises(MisuseError, match="--against"):
        keep_report(store, report(store, "dry"))
    once = keep_report(store, report(store, "dry", against=str(file)))
    assert keep_report(store, report(store, "dry", against=str(file))) == once
    assert len(store.runs(task="milepost-comparison")) == 1


def test_shadow_runs_add_up_over_time(store: MemoryStore, file: Path) -> None:
    plan = role()
    shadowed(store, plan, "dry-1", file)
    shadowed(store, plan, "dry-2", file, "11.00")
    plan.options(store=store, shadow=True).run("dry-3")
    found = over_time(store, "bookkeeper")
    assert [(run["run_id"], run["agreement"]) for run in found["runs"]] == [
        ("dry-3", None),
        ("dry-2", 0.0),
        ("dry-1", 1.0),
    ]
    assert (found["agreement"], found["compared_count"], found["promotion"]) == (0.5, 2, None)


def test_a_shadow_run_is_compared_with_a_live_one(store: MemoryStore, live: Any) -> None:
    live.options(store=store).run("live", "12.00")
    made = report(store, "dry-1", against="live")
    (line,) = made.lines
    assert (line.stands, line.differences[0].did) == ("different", "12.00")
    assert made.agreement == 0.0
    with pytest.raises(MisuseError, match="live run"):
        report(store, "live")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("x.csv", "number,amount\nINV-1\n", "not as many fields"),
        ("x.jsonl", "[1]\n", "no object"),
        ("x.jsonl", "{", "not what its name says"),
        ("missing.csv", None, "cannot be read"),
        ("x.csv", "other\n1\n", "--on"),
        ("x.csv", '"a\n', "not what its name says"),
    ],
)
def test_a_file_that_says_nothing_is_refused(
    store: MemoryStore, tmp_path: Path, name: str, text: str | None, expected: str
) -> None:
    role().options(store=store, shadow=True).run("dry")
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(MilepostError, match=expected):
        report(store, "dry", against=str(tmp_path / name))
