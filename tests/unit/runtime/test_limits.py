"""Limits of a run: counted in the journal across restarts, ending in one question; a rate that only waits."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from clock import START
from desk import Desk

from milepost import Key, Limits, Rate, effect, spent, step, task
from milepost.errors import BadOption, LimitReached, QuestionError, RunEnded, RunWaiting, StepFailed
from milepost.protocol.limits import limits_from
from milepost.records.times import parse_time
from milepost.runtime.check import check_run
from milepost.stores.contract import Store
from milepost.stores.memory import MemoryStore
from milepost.views.limits import limit_objects, limit_words

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


def thinks(limits: Limits, *, count: int = 4, cost: str = "2", tokens: int = 100) -> Any:
    """A plan of steps that each say what they spent."""

    @step(key=lambda number: number)
    def thought(number: int) -> int:
        ran.append(f"thought {number}")
        spent(input_tokens=tokens - 10, output_tokens=10, cost=cost)
        return number

    @task(limits=limits)
    def thinks_much() -> int:
        return sum(thought(number) for number in range(count))

    return thinks_much


@pytest.mark.parametrize(
    ("limits", "says"),
    [(Limits(cost=4), "4 of 4 cost"), (Limits(tokens=200), "200 of 200 tokens")],
    ids=["cost", "tokens"],
)
def test_a_budget_that_is_used_up_asks_before_the_next_step(desk: Desk, limits: Limits, says: str) -> None:
    """An agent that goes round in circles costs money: it is stopped before it spends more, and may go on."""
    plan = thinks(limits)
    with pytest.raises(LimitReached, match=says):
        desk.run(plan)
    assert ran == ["thought 0", "thought 1"]
    assert [choice.name for choice in desk.asked().choices] == ["again", "stop"]
    desk.answer("again")
    assert desk.resume(plan) == 6
    assert len(ran) == 4


def test_what_a_killed_process_spent_counts(desk: Desk) -> None:
    """A step that spends and dies each time has no checkpoint that could say so."""
    plan = thinks(Limits(cost=4, resumes=9))
    desk.dies(plan, at="append:step_verified", phase="before", settled=True)
    desk.dies(plan, at="append:step_verified", phase="before", settled=True)
    with pytest.raises(LimitReached, match="4 of 4 cost"):
        desk.resume(plan)
    assert ran == ["thought 0", "thought 0"]
    assert desk.snapshot().used.cost == Decimal(4)


def forgets_costs(store: Store) -> None:
    """Take what a run has cost out of the list of runs, as somebody can who writes to the store."""
    if isinstance(store, MemoryStore):
        run = store._runs["r"]
        run.row = replace(run.row, progress=run.row.progress._replace(cost="", tokens=0))
        return
    with closing(sqlite3.connect(store.location, isolation_level=None)) as connection:
        connection.execute("UPDATE runs SET cost = '', tokens = 0")


@pytest.mark.parametrize("is_told", [True, False])
def test_what_was_spent_inside_finished_steps_counts_after_a_restart(desk: Desk, is_told: bool) -> None:
    """A resume does not read the chains of finished steps; what they cost was spent, whatever the list of runs says."""

    @step
    def inner(number: int) -> int:
        spent(cost=3)
        return number

    @step
    def outer() -> int:
        return inner(1) + inner(2)

    @step
    def after(before: int) -> int:
        ran.append("after")
        return before

    @task(limits=Limits(cost=6))
    def nested() -> int:
        return after(outer())

    desk.dies(nested, at="append:step_verified", nth=3, settled=True)
    if not is_told:
        forgets_costs(desk.store)
    with pytest.raises(LimitReached, match="6 of 6 cost"):
        desk.resume(nested)
    assert ran == []


def test_stop_ends_the_run(desk: Desk) -> None:
    plan = thinks(Limits(cost=2))
    with pytest.raises(LimitReached):
        desk.run(plan)
    desk.answer("stop")
    with pytest.raises(RunEnded):
        desk.resume(plan)
    assert desk.status() == "stopped"


def test_branches_that_find_a_limit_used_up_ask_once(desk: Desk) -> None:
    """Eight items of a map are one decision, not eight."""

    @step
    def first() -> int:
        spent(cost=1)
        return 1

    @step
    def item(number: int) -> int:
        return number

    @task(limits=Limits(cost=1))
    def maps() -> list[int]:
        first()
        return item.map(range(8), concurrency=8)

    with pytest.raises(LimitReached):
        desk.run(maps)
    assert len(desk.questions) == 1
    desk.answer("again")
    assert desk.resume(maps) == list(range(8))


def test_resumes_are_counted_and_the_next_one_asks(desk: Desk) -> None:
    plan = thinks(Limits(resumes=2))
    for _ in range(3):
        desk.dies(plan, at="append:step_verified", settled=True)
    with pytest.raises(LimitReached, match="3 of 2 resumes"):
        desk.resume(plan)
    desk.answer("again")
    assert desk.resume(plan) == 6


def test_wall_time_counts_from_the_first_start_and_again_from_the_answer(desk: Desk) -> None:
    """Days that an answer took are not held against the run twice."""

    @step(key=lambda number: number)
    def hour(number: int) -> int:
        desk.clock.move(timedelta(hours=1))
        return number

    @task(limits=Limits(wall=timedelta(hours=2)))
    def long() -> int:
        return sum(hour(number) for number in range(4))

    with pytest.raises(LimitReached, match="2:00:00 of the 2:00:00 allowed since its first start"):
        desk.run(long)
    desk.clock.move(timedelta(days=3))
    desk.answer("again")
    assert desk.resume(long) == 6


def test_the_same_error_in_a_row_asks_although_its_numbers_differ(desk: Desk) -> None:
    """A restart that meets the same wall again and again is not progress."""
    tries = iter(range(100))

    @step
    def calls() -> None:
        raise ConnectionError(f"port {next(tries)} refused")

    @task(limits=Limits(same_error=2))
    def stubborn() -> None:
        calls()

    with pytest.raises(StepFailed):
        desk.run(stubborn)
    with pytest.raises(StepFailed):
        desk.resume(stubborn)
    with pytest.raises(LimitReached, match="the same error 2 of 2 times in a row"):
        desk.resume(stubborn)
    desk.answer("again")
    with pytest.raises(StepFailed):
        desk.resume(stubborn)


def test_other_errors_and_progress_begin_the_row_anew(desk: Desk) -> None:
    wrong = iter([ValueError("a"), OSError("b"), ValueError("a"), None])

    @step
    def varies() -> int:
        error = next(wrong)
        if error is not None:
            raise error
        return 1

    @task(limits=Limits(same_error=2))
    def varied() -> int:
        return varies()

    for _ in range(2):
        with pytest.raises(StepFailed):
            desk.run(varied)
    with pytest.raises(StepFailed):
        desk.resume(varied)
    assert desk.snapshot().used.error_count == 1
    with pytest.raises(QuestionError, match="was started 3 times"):
        desk.resume(varied)


def test_the_same_error_of_the_plan_itself_counts(desk: Desk) -> None:
    @task(limits=Limits(same_error=2))
    def broken() -> None:
        raise ValueError("between steps")

    for _ in range(2):
        with pytest.raises(StepFailed):
            desk.run(broken)
    with pytest.raises(LimitReached):
        desk.resume(broken)


# ── the rate of sends ───────────────────────────────────────────────────────────────────────────────


def posts(rate: Rate, count: int) -> Any:
    @effect(key=lambda number: number, key_lifetime=timedelta(hours=1))
    def posted(key: Key, number: int) -> int:
        ran.append(f"post {number}")
        return number

    @task(limits=Limits(sends=rate))
    def posts_all() -> list[int]:
        return [posted(number) for number in range(count)]

    return posts_all


def sent_at(desk: Desk) -> list[timedelta]:
    return [parse_time(record.at) - START for record in desk.records("intent_recorded")]


def test_a_rate_waits_and_asks_nobody(desk: Desk) -> None:
    """Three sends a minute are three sends in each minute, however fast the plan is."""
    assert desk.run(posts(Rate(3, MINUTE), 7)) == list(range(7))
    assert sent_at(desk) == [MINUTE * (number // 3) for number in range(7)]


def test_a_restart_keeps_to_the_rate(desk: Desk) -> None:
    """What was sent stands in the journal: dying is no way around a provider's limit."""
    plan = posts(Rate(2, MINUTE), 4)
    desk.dies(plan, at="append:outcome_recorded", nth=2, settled=True)
    assert desk.resume(plan) == list(range(4))
    assert sent_at(desk) == [MINUTE * 0, MINUTE * 0, MINUTE, MINUTE]


def test_without_waiting_the_run_leaves_until_it_may_send(desk: Desk) -> None:
    plan = posts(Rate(1, MINUTE), 2)
    with pytest.raises(RunWaiting):
        desk.run(plan, wait=False)
    assert desk.status() == "waiting"
    desk.clock.move(MINUTE)
    assert desk.resume(plan, wait=False) == [0, 1]


def test_branches_share_the_rate(desk: Desk) -> None:
    """Eight branches that look at once must not all find the place free."""

    @effect(key=lambda number: number, key_lifetime=timedelta(hours=1))
    def posted(key: Key, number: int) -> int:
        return number

    @task(limits=Limits(sends=Rate(2, SECOND)))
    def maps() -> list[int]:
        return posted.map(range(6), concurrency=6)

    assert desk.run(maps) == list(range(6))
    at = sorted(sent_at(desk))
    assert all(later - earlier >= SECOND for earlier, later in zip(at, at[2:], strict=False))


def test_the_same_holds_on_an_event_loop(desk: Desk) -> None:
    """Branches of an asynchronous plan share the rate and ask once."""

    @step
    async def thought(number: int) -> int:
        spent(cost=1)
        return number

    @effect(key=lambda number: number, key_lifetime=timedelta(hours=1))
    async def posted(key: Key, number: int) -> int:
        return number

    @task(limits=Limits(cost=3, sends=Rate(2, SECOND)))
    async def plan() -> list[int]:
        for number in range(3):
            await thought(number)
        return await asyncio.gather(*(posted(number) for number in range(6)))

    with pytest.raises(LimitReached, match="3 of 3 cost"):
        asyncio.run(desk.run(plan))
    assert len(desk.questions) == 1
    desk.answer("again")
    assert asyncio.run(desk.resume(plan)) == list(range(6))
    at = sorted(sent_at(desk))
    assert all(later - earlier >= SECOND for earlier, later in zip(at, at[2:], strict=False))


# ── what is shown, what is refused ──────────────────────────────────────────────────────────────────


def test_a_check_says_how_much_was_used(desk: Desk) -> None:
    """Somebody who is about to resume a run sees what is left before it runs; the resume that is foreseen counts."""
    plan = thinks(Limits(cost=100, resumes=5))
    desk.dies(plan, at="append:step_verified", nth=2, settled=True)
    options = plan.options(**desk.options())._options
    (bound,) = [f for f in check_run(plan.spec, "r", desk.store, options) if f.rule == "Bound"]
    assert "1 of 5 resumes; 4 of 100 cost" in bound.found
    assert desk.snapshot().limits == {"cost": "100", "resumes": 5}
    assert [one["says"] for one in limit_objects(desk.snapshot(), START)] == ["0 of 5 resumes", "4 of 100 cost"]


def test_a_map_says_what_a_task_may_use() -> None:
    """The role definition holds what it may cost, readable before it runs."""
    limits = Limits(resumes=5, cost="2.50", wall=timedelta(days=2), same_error=3, sends=Rate(30, MINUTE))
    said = ["5 resumes", "a cost of 2.50", "2 d since the first start", "the same error 3 times in a row"]
    assert limit_words(limits) == [*said, "30 sends in 1 min (waits)"]
    assert limits_from(limits.to_json()) == replace(limits, cost="2.50")


@pytest.mark.parametrize(
    "limits",
    [
        lambda: Limits(resumes=0),
        lambda: Limits(cost="much"),
        lambda: Limits(cost=-1),
        lambda: Limits(tokens=1.5),  # type: ignore[arg-type]
        lambda: Limits(wall=timedelta(0)),
        lambda: Limits(sends=3),  # type: ignore[arg-type]
        lambda: Rate(0, MINUTE),
        lambda: Rate(3, timedelta(0)),
        lambda: task(limits={"cost": 3})(lambda: None),  # type: ignore[call-overload]
    ],
)
def test_a_limit_that_means_nothing_is_refused_when_it_is_declared(limits: Any) -> None:
    with pytest.raises(BadOption, match=r"expected .*, found"):
        limits()


def test_what_a_person_allowed_once_more_is_not_asked_again_after_a_restart(desk: Desk) -> None:
    """What was used by then lies inside finished steps, which a resume does not read."""

    @step(key=lambda number: number)
    def inner(number: int) -> int:
        spent(cost=3)
        return number

    @step(key=lambda number: number)
    def outer(number: int) -> int:
        return inner(number)

    @task(limits=Limits(cost=6))
    def nested() -> int:
        return sum(outer(number) for number in range(4))

    with pytest.raises(LimitReached, match="6 of 6 cost"):
        desk.run(nested)
    desk.answer("again")
    desk.dies(nested, at="append:step_verified", phase="durable", nth=2, settled=True)
    assert desk.resume(nested) == 6


def test_the_list_of_runs_says_what_was_spent_in_all_also_after_a_restart(desk: Desk) -> None:
    """Without limits nobody counts the records inside finished steps again; their sum stands in the run's row."""

    @step
    def inner(number: int) -> int:
        spent(cost=3, input_tokens=5, output_tokens=1)
        return number

    @step
    def outer() -> int:
        return inner(1)

    @step
    def after(number: int) -> int:
        spent(cost="0.5", input_tokens=1)
        return number

    @task
    def nested() -> int:
        return after(outer())

    desk.dies(nested, at="append:step_verified", nth=2, settled=True)
    assert desk.resume(nested) == 1
    row = desk.store.run("r")
    assert row is not None
    assert (row.progress.cost, row.progress.tokens) == ("3.5", 7)
