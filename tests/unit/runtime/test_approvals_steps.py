"""Approval of steps: before the body runs, and of the verified output before its checkpoint."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from desk import Desk
from people import ADA, BOB, says

from milepost import Declined, Retry, StepFailed, step, task
from milepost.errors import ApprovalNeeded, AttemptsUsed, SourceChanged


class Bodies:
    """Counts what ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []


@pytest.fixture
def bodies() -> Bodies:
    return Bodies()


def drafting(bodies: Bodies, **options: Any) -> Any:
    @step(**options)
    def draft(topic: str) -> str:
        bodies.ran.append(topic)
        return f"{topic}, draft {len(bodies.ran)}"

    @task
    def writing(topic: str) -> str:
        return draft(topic).upper()

    return writing


def asks(desk: Desk, plan: Any, match: str = "tea") -> None:
    with pytest.raises(ApprovalNeeded, match=match):
        desk.run(plan, "tea")


def test_the_body_does_not_run_before_it_is_allowed(desk: Desk, bodies: Bodies) -> None:
    plan = drafting(bodies, approve="before", summary="Write about {topic}")
    asks(desk, plan, "draft is to be started: Write about tea")
    assert bodies.ran == []
    assert desk.evidence()["request"] == {"arguments": {"topic": "tea"}}
    assert [choice.name for choice in desk.asked().choices] == ["approve", "decline"]
    says(desk, ADA, "approve")
    assert desk.resume(plan) == "TEA, DRAFT 1"


def test_an_allowed_start_covers_the_starts_after_it(desk: Desk, bodies: Bodies) -> None:
    """The process died in the body: it starts again without asking, also after the approval's expiry."""
    plan = drafting(bodies, approve="before", summary="Write about {topic}", approval_expires=timedelta(hours=1))
    asks(desk, plan)
    says(desk, ADA, "approve")
    desk.dies(plan, "tea", at="body")
    desk.clock.move(timedelta(days=1))
    assert desk.resume(plan) == "TEA, DRAFT 2"


def test_a_declined_step_never_starts(desk: Desk, bodies: Bodies) -> None:
    plan = drafting(bodies, approve="before", summary="Write about {topic}")
    asks(desk, plan)
    says(desk, ADA, "decline")
    for _ in range(4):
        with pytest.raises(Declined, match="draft was declined by ada@office"):
            desk.resume(plan)
    assert bodies.ran == []


def test_a_decline_inside_a_step_comes_out_of_it_as_it_is(desk: Desk, bodies: Bodies) -> None:
    """And a policy that tries everything again does not try a decline again."""

    @step(approve="before")
    def inner() -> None:
        bodies.ran.append("inner")

    @step(retry=Retry(on=Exception, attempts=2))
    def outer() -> None:
        inner()

    @task
    def nested() -> str:
        try:
            outer()
        except Declined as error:
            return f"without: {error.path}"
        return "with"

    with pytest.raises(ApprovalNeeded):
        desk.run(nested)
    says(desk, ADA, "decline")
    for _ in range(4):
        desk.dies_at_its_end(nested)
    assert desk.resume(nested) == "without: outer/inner"
    assert bodies.ran == []


# ── review ──────────────────────────────────────────────────────────────────────────────────────────


def test_an_output_is_reviewed_after_its_checks_and_before_its_checkpoint(desk: Desk, bodies: Bodies) -> None:
    plan = drafting(
        bodies, review="after", verify=lambda output: "tea" in output, summary="Read what is said of {topic}"
    )
    asks(desk, plan, "The output of draft passed its checks and waits for a review: Read what is said of tea")
    assert desk.records("step_verified") == []
    assert desk.evidence()["output"] == "tea, draft 1"
    assert [choice.name for choice in desk.asked().choices] == ["approve", "redo", "decline"]
    says(desk, ADA, "approve")
    assert desk.resume(plan) == "TEA, DRAFT 1"
    assert bodies.ran == ["tea"]
    assert desk.resume(plan) == "TEA, DRAFT 1"


def test_an_output_that_fails_its_check_is_not_shown_to_anybody(desk: Desk, bodies: Bodies) -> None:
    plan = drafting(bodies, review="after", verify=lambda output: False)
    with pytest.raises(StepFailed):
        desk.run(plan, "tea")
    assert desk.questions == []


def test_redo_runs_the_step_again_and_asks_about_its_new_output(desk: Desk, bodies: Bodies) -> None:
    plan = drafting(bodies, review="after")
    asks(desk, plan, "draft passed")
    for number in (2, 3, 4, 5):
        says(desk, ADA, "redo")
        asks(desk, plan, "Asked anew: it ran again, as ada@office asked")
        assert desk.evidence()["output"] == f"tea, draft {number}"
    says(desk, ADA, "approve")
    assert desk.resume(plan) == "TEA, DRAFT 5"


def test_a_declined_output_never_becomes_a_checkpoint(desk: Desk, bodies: Bodies) -> None:
    plan = drafting(bodies, review="after")
    asks(desk, plan, "draft passed")
    says(desk, ADA, "decline")
    for _ in range(2):
        with pytest.raises(Declined):
            desk.resume(plan)
    assert (bodies.ran, desk.records("step_verified")) == (["tea"], [])


@pytest.mark.parametrize("phase", ["before", "done", "durable"])
def test_a_death_between_review_and_checkpoint_does_not_repeat_the_body(desk: Desk, bodies: Bodies, phase: str) -> None:
    plan = drafting(bodies, review="after")
    asks(desk, plan, "draft passed")
    says(desk, ADA, "approve")
    desk.dies(plan, "tea", at="append:step_verified", phase=phase)
    assert desk.resume(plan) == "TEA, DRAFT 1"


def test_a_review_is_of_one_output(desk: Desk, bodies: Bodies) -> None:
    """Other inputs give another output: somebody has to look at that one."""
    topic = ["tea"]

    @step(review="after")
    def draft(about: str) -> str:
        bodies.ran.append(about)
        return about

    @task
    def writing() -> str:
        return draft(topic[0])

    with pytest.raises(ApprovalNeeded):
        desk.run(writing)
    says(desk, ADA, "approve")
    topic[0] = "salt"
    with pytest.raises(ApprovalNeeded, match="the approval by ada@office is void"):
        desk.resume(writing)
    assert desk.evidence()["output"] == "salt"


def test_both_before_and_after_are_asked(desk: Desk, bodies: Bodies) -> None:
    plan = drafting(bodies, approve="before", review="after", approvals=2)
    asks(desk, plan, "is to be started")
    says(desk, ADA, "approve")
    says(desk, BOB, "approve")
    asks(desk, plan, "waits for a review")
    says(desk, ADA, "redo")
    asks(desk, plan, "waits for a review")
    says(desk, ADA, "approve")
    says(desk, BOB, "approve")
    assert desk.resume(plan) == "TEA, DRAFT 2"


# ── sources ─────────────────────────────────────────────────────────────────────────────────────────


def paying_what_is_counted(orders: Path, bodies: Bodies) -> Any:
    """Return a task that reads a source in one step and pays in another, which people approve."""

    @step
    def count(path: Path) -> int:
        return len(path.read_text().splitlines())

    @step(approve="before")
    def pay(number: int) -> int:
        bodies.ran.append("pay")
        return number

    @task
    def paying() -> int:
        return pay(count(orders))

    return paying


def test_a_source_that_somebody_kept_although_it_changed_voids_the_approval(
    desk: Desk, bodies: Bodies, tmp_path: Path
) -> None:
    """The approval was given for what was read then."""
    orders = tmp_path / "orders.csv"
    orders.write_text("1\n")
    paying = paying_what_is_counted(orders, bodies)
    with pytest.raises(ApprovalNeeded):
        desk.run(paying)
    says(desk, ADA, "approve")
    orders.write_text("1\n2\n")
    with pytest.raises(SourceChanged):
        desk.resume(paying)
    says(desk, BOB, "keep")
    with pytest.raises(ApprovalNeeded, match=r"the approval by ada@office is void, .*orders.csv"):
        desk.resume(paying)
    assert bodies.ran == []


def test_a_step_that_is_redone_voids_the_approval_of_what_rests_on_it(
    desk: Desk, bodies: Bodies, tmp_path: Path
) -> None:
    """Also when it comes to the same: what was read is not what it was."""
    orders = tmp_path / "orders.csv"
    orders.write_text("1\n")
    paying = paying_what_is_counted(orders, bodies)
    with pytest.raises(ApprovalNeeded):
        desk.run(paying)
    says(desk, ADA, "approve")
    orders.write_text("2\n")
    with pytest.raises(SourceChanged):
        desk.resume(paying)
    says(desk, BOB, "redo")
    with pytest.raises(ApprovalNeeded, match=r"is void, .*sources.count"):
        desk.resume(paying)
    says(desk, ADA, "approve")
    assert desk.resume(paying) == 1


def test_a_step_that_finishes_later_elsewhere_does_not_void_it(desk: Desk, bodies: Bodies, tmp_path: Path) -> None:
    """Something else was read after the question was asked; the call does not rest on it."""
    orders = tmp_path / "orders.csv"
    orders.write_text("1\n")

    @step
    def read(path: Path) -> int:
        return len(path.read_text())

    @step(approve="before")
    def pay() -> int:
        bodies.ran.append("pay")
        return 1

    @task
    async def both() -> list[int]:
        return list(await asyncio.gather(pay.aio(), read.aio(orders)))

    with pytest.raises(ApprovalNeeded):
        asyncio.run(both.options(**desk.options()).run("r"))
    says(desk, ADA, "approve")
    assert asyncio.run(both.options(**desk.options()).resume("r")) == [1, 2]
    assert len(desk.records("question_asked")) == 1


def test_attempts_are_counted_as_ever(desk: Desk, bodies: Bodies) -> None:
    @step(approve="before")
    def fails() -> None:
        raise ValueError("no")

    @task
    def failing() -> None:
        fails()

    with pytest.raises(ApprovalNeeded):
        desk.run(failing)
    says(desk, ADA, "approve")
    for _ in range(3):
        with pytest.raises(StepFailed):
            desk.resume(failing)
    with pytest.raises(AttemptsUsed):
        desk.resume(failing)
