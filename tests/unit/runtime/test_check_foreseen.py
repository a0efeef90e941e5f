"""The exit status that `resume --check` foresees is the one that the resume then has, whatever happened before."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from desk import Desk
from provider import Provider

from milepost import Found, Key, NotFound, effect, step, task
from milepost.errors import MilepostError, QuestionError, RefusedError
from milepost.protocol.findings import Finding
from milepost.runtime.active import RunOptions
from milepost.runtime.check import check_run

DAY = timedelta(days=1)
Situation = Callable[[Desk, Path], Any]
"""Brings a run somewhere and returns the task that it is resumed with."""


def check(desk: Desk, plan: Any) -> list[Finding]:
    return check_run(plan.spec, "r", desk.store, RunOptions(store=desk.store, clock=desk.clock))


def foreseen(found: list[Finding]) -> int:
    states = {finding.state for finding in found}
    if "refuse" in states:
        return RefusedError.exit_status
    return QuestionError.exit_status if "ask" in states else 0


def status_of(call: Callable[[], Any]) -> int:
    try:
        call()
    except MilepostError as error:
        return error.exit_status
    return 0


def ordering(desk: Desk, name: str = "order", *, lookup: bool = False, reached: bool = True, **options: Any) -> Any:
    """Return a plan with one effect, or one that does not come to it any more."""
    provider = Provider(desk.clock, honours_keys=True)

    def find(key: Key, article: str) -> Found[str] | NotFound:
        return NotFound()

    if lookup:
        options |= {"lookup": find, "settle": timedelta(0)}

    @effect(name=name, **options)
    def order(key: Key, article: str) -> str:
        return str(provider.apply(key, article))

    @task(name="ordering")
    def plan() -> str:
        return str(order("bolt")) if reached else "nothing"

    return plan


def asked(desk: Desk, plan: Any) -> None:
    assert status_of(lambda: desk.run(plan)) == QuestionError.exit_status


# ── what became of an effect ────────────────────────────────────────────────────────────────────────


def in_doubt(desk: Desk, place: Path) -> Any:
    plan = ordering(desk)
    desk.dies(plan, at="send")
    return plan


def renamed_in_doubt(desk: Desk, place: Path) -> Any:
    in_doubt(desk, place)
    return ordering(desk, "place_order")


def dropped_in_doubt(desk: Desk, place: Path) -> Any:
    in_doubt(desk, place)
    return ordering(desk, reached=False)


def dropped_within_its_lifetime(desk: Desk, place: Path) -> Any:
    """It would be sent again with its key, were it reached."""
    desk.dies(ordering(desk, key_lifetime=DAY), at="send")
    return ordering(desk, key_lifetime=DAY, reached=False)


def within_its_lifetime(desk: Desk, place: Path) -> Any:
    plan = ordering(desk, key_lifetime=DAY)
    desk.dies(plan, at="send")
    return plan


def found_by_nobody(desk: Desk, place: Path) -> Any:
    plan = ordering(desk, lookup=True)
    desk.dies(plan, at="send")
    return plan


def answered_as(choice: str) -> Situation:
    def situation(desk: Desk, place: Path) -> Any:
        plan = in_doubt(desk, place)
        asked(desk, plan)
        desk.answer(choice, **({"result": "receipt"} if choice == "applied" else {}))
        return plan

    return situation


def asked_and_not_answered(desk: Desk, place: Path) -> Any:
    plan = in_doubt(desk, place)
    asked(desk, plan)
    return plan


# ── the plan, sources, versions, attempts ───────────────────────────────────────────────────────────


def renamed_when_applied(desk: Desk, place: Path) -> Any:
    desk.dies_at_its_end(ordering(desk))
    return ordering(desk, "place_order")


def renamed_and_accepted(desk: Desk, place: Path) -> Any:
    """It is asked about what is not called again as well, when the plan ends."""
    plan = renamed_when_applied(desk, place)
    asked(desk, plan)
    desk.answer("accept")
    return plan


def dropped_and_accepted(desk: Desk, place: Path) -> Any:
    desk.dies_at_its_end(ordering(desk))
    plan = ordering(desk, reached=False)
    asked(desk, plan)
    desk.answer("accept")
    return plan


def reading(place: Path, version: str = "1") -> Any:
    orders = place / "orders.csv"
    if not orders.exists():
        orders.write_text("bolt\n")

    @step(name="read", version=version)
    def read(path: Path) -> str:
        return path.read_text()

    @task(name="reading", on_version_change="ask")
    def plan() -> str:
        return read(orders)

    return plan


def source_changed(desk: Desk, place: Path) -> Any:
    plan = reading(place)
    desk.dies_at_its_end(plan)
    (place / "orders.csv").write_text("nut\n")
    return plan


def versions_changed(desk: Desk, place: Path) -> Any:
    desk.dies_at_its_end(reading(place))
    return reading(place, "2")


def answering(situation: Situation, choice: str) -> Situation:
    def answered(desk: Desk, place: Path) -> Any:
        plan = situation(desk, place)
        asked(desk, plan)
        desk.answer(choice)
        return plan

    return answered


def killing(desk: Desk, place: Path) -> Any:
    @step
    def kills() -> int:
        return 1

    @task(name="killing")
    def plan() -> int:
        return kills()

    for _ in range(3):
        desk.dies(plan, at="body", nth=2, phase="before", settled=True)
    return plan


def without_progress(desk: Desk, place: Path) -> Any:
    """The resume that is asked about is the one that would find itself to be too many."""

    @step(retry=None)
    def never() -> int:
        raise LookupError

    @task(name="failing")
    def plan() -> int:
        return never()

    for _ in range(3):
        assert status_of(lambda: desk.run(plan)) == 1
    return plan


def cancelled(situation: Situation) -> Situation:
    def asked_to_end(desk: Desk, place: Path) -> Any:
        plan = situation(desk, place)
        desk.cancel()
        return plan

    return asked_to_end


@pytest.mark.parametrize(
    ("situation", "status"),
    [
        pytest.param(in_doubt, 4, id="in doubt"),
        pytest.param(asked_and_not_answered, 4, id="asked and not answered"),
        pytest.param(answered_as("applied"), 0, id="answered applied"),
        pytest.param(answered_as("not-applied"), 0, id="answered not-applied"),
        pytest.param(answered_as("stop"), 3, id="answered stop"),
        pytest.param(renamed_in_doubt, 4, id="renamed in doubt"),
        pytest.param(dropped_in_doubt, 4, id="dropped in doubt"),
        pytest.param(within_its_lifetime, 0, id="within its lifetime"),
        pytest.param(dropped_within_its_lifetime, 4, id="dropped within its lifetime"),
        pytest.param(found_by_nobody, 0, id="looked up, not found"),
        pytest.param(renamed_when_applied, 4, id="renamed when applied"),
        pytest.param(dropped_and_accepted, 0, id="dropped and accepted"),
        pytest.param(source_changed, 4, id="source changed"),
        pytest.param(answering(source_changed, "keep"), 0, id="source kept"),
        pytest.param(answering(source_changed, "redo"), 0, id="source redone"),
        pytest.param(versions_changed, 4, id="versions changed"),
        pytest.param(answering(versions_changed, "accept"), 0, id="versions accepted"),
        pytest.param(answering(versions_changed, "redo"), 0, id="versions redone"),
        pytest.param(killing, 4, id="attempts used"),
        pytest.param(answering(killing, "again"), 0, id="attempts given again"),
        pytest.param(without_progress, 4, id="failed three times"),
        pytest.param(cancelled(within_its_lifetime), 4, id="cancelled, nobody can look it up"),
        pytest.param(cancelled(killing), 3, id="cancelled"),
    ],
)
def test_a_check_foresees_the_exit_status(desk: Desk, tmp_path: Path, situation: Situation, status: int) -> None:
    """Who types it before a deploy, or in a script, acts on it."""
    plan = situation(desk, tmp_path)
    before = desk.records()
    found = check(desk, plan)
    assert desk.records() == before, "a check writes nothing"
    came = status_of(lambda: desk.resume(plan))
    assert (foreseen(found), came) == (status, status), [(line.rule, line.state, line.found) for line in found]


def test_a_check_says_that_answers_would_be_entered(desk: Desk, tmp_path: Path) -> None:
    plan = answered_as("applied")(desk, tmp_path)
    recorded, found = len(desk.records()), check(desk, plan)
    assert found[0].found == f"{recorded} records read, seals and digests hold"
    assert found[4].found.startswith("1 answer would be entered; next: order (its outcome is known now")


def test_what_follows_an_accepted_rename_is_told_as_far_as_the_plan_can_be_replayed(desk: Desk, tmp_path: Path) -> None:
    """What is not called again shows when the plan has ended: after the send that was accepted."""
    plan = renamed_and_accepted(desk, tmp_path)
    assert check(desk, plan)[4].found == "1 answer would be entered; next: place_order (it would be sent)"
