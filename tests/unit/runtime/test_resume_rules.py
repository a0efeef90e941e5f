"""The six rules around the plan: trust, the order of things, the bound, cancelling, ended runs and waits."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from desk import Desk
from posting import posting
from provider import Provider

from milepost import Key, Retry, RunWaiting, StepFailed, effect, heartbeat, last_heartbeat, step, task
from milepost.errors import (
    AttemptsUsed,
    CorruptRecord,
    InputsDiffer,
    OutcomeUnknown,
    RunBusy,
    RunEnded,
    RunInterrupted,
    RunUnknown,
    SealKeyMissing,
    SourceChanged,
    WrongTask,
)
from milepost.protocol.policy import RESUMES_MAX
from milepost.runtime.scope import current
from milepost.runtime.standing import waits_until
from milepost.runtime.verify import verify_run
from milepost.stores.memory import MemoryStore

ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


@step
def first_of_two(number: int) -> int:
    ran.append("first")
    return number + 1


@step
def second_of_two(number: int) -> int:
    ran.append("second")
    return number * 10


@task
def two_steps(number: int) -> int:
    return second_of_two(first_of_two(number))


@task
def another_task(number: int) -> int:
    return number


# ── 1 trust ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_that_does_not_exist_is_absent(desk: Desk) -> None:
    """Absent, corrupt and cannot tell are three different answers: this is the first."""
    with pytest.raises(RunUnknown):
        desk.resume(two_steps)


def test_a_run_sealed_with_a_key_cannot_be_told_without_it(desk: Desk) -> None:
    """Neither trusted nor called corrupt: this is the third answer."""
    desk.seal_key = b"the key of this company"
    desk.dies(two_steps, 1, at="body", phase="before", nth=3)
    for wrong in (None, b"some other key, long enough"):
        desk.seal_key = wrong
        with pytest.raises(SealKeyMissing):
            desk.resume(two_steps)
    desk.seal_key = b"the key of this company"
    assert desk.resume(two_steps) == 20
    assert ran == ["first", "second"]


def test_an_altered_record_is_refused_by_name_and_nothing_is_changed(desk: Desk) -> None:
    desk.dies(two_steps, 1, at="body", phase="before", nth=3)
    before = len(desk.store.records("r"))
    _alter_last_record(desk)
    with pytest.raises(CorruptRecord, match="record"):
        desk.resume(two_steps)
    assert len(desk.store.records("r")) == before
    assert ran == ["first"]


def _alter_last_record(desk: Desk) -> None:
    """Change one number of the last record where it is stored, as someone with access to the store could."""
    last = desk.store.records("r")[-1]
    altered = last.body.replace(b'"attempt":1', b'"attempt":7')
    assert altered != last.body
    if isinstance(desk.store, MemoryStore):
        desk.store._runs["r"].records[-1] = last._replace(body=altered)
        return
    with closing(sqlite3.connect(desk.store.location)) as connection, connection:
        changed = connection.execute("update journal set body = ? where seq = ?", (altered, last.seq))
        assert changed.rowcount == 1


# ── ended runs, other inputs ────────────────────────────────────────────────────────────────────────


def test_a_finished_run_started_again_returns_its_recorded_result(desk: Desk) -> None:
    assert desk.run(two_steps, 1) == 20
    assert desk.run(two_steps, 1) == 20
    assert desk.resume(two_steps) == 20
    assert ran == ["first", "second"]


def test_a_run_is_not_started_with_other_inputs(desk: Desk) -> None:
    """Finished or not: its checkpoints were made from the inputs it has."""
    desk.dies(two_steps, 1, at="body", phase="before", nth=3)
    with pytest.raises(InputsDiffer, match=r"1.*2"):
        desk.run(two_steps, 2)
    assert desk.resume(two_steps) == 20
    with pytest.raises(InputsDiffer):
        desk.run(two_steps, 2)


def test_a_run_of_another_task_is_refused(desk: Desk) -> None:
    desk.run(two_steps, 1)
    with pytest.raises(WrongTask, match="two_steps"):
        desk.run(another_task, 1)


def test_two_starters_one_runs_the_other_is_told_who(desk: Desk) -> None:
    told: list[RunBusy] = []

    @step
    def starts_again() -> str:
        token = current.set(None)
        try:
            desk.resume(contended)
        except RunBusy as busy:
            told.append(busy)
        finally:
            current.reset(token)
        return "done"

    @task
    def contended() -> str:
        return starts_again()

    assert desk.run(contended) == "done"
    assert "process" in told[0].holder
    assert told[0].since == desk.records("run_started")[0].at


# ── 6 bound ─────────────────────────────────────────────────────────────────────────────────────────


def test_five_fruitless_resumes_end_in_a_question(desk: Desk) -> None:
    """A run that dies again and again and brings nothing must not go on for ever, whatever its policies allow."""

    @step(retry=Retry(on=ValueError, attempts=100))
    def never_done() -> int:
        ran.append("body")
        return 1

    @task
    def hopeless() -> int:
        return never_done()

    for _ in range(1 + RESUMES_MAX):
        desk.dies(hopeless, at="body", phase="before", nth=2)
    with pytest.raises(AttemptsUsed, match="5 resumes in a row"):
        desk.resume(hopeless)
    assert ran == []
    desk.answer("again")
    assert desk.resume(hopeless) == 1


def test_a_resume_that_brings_a_checkpoint_begins_the_count_anew(desk: Desk) -> None:
    @step
    def one_more(number: int) -> int:
        return number

    @task
    def slow_but_sure() -> int:
        return sum(one_more(n) for n in range(12))

    for done in range(1, 9):
        desk.dies(slow_but_sure, at="body", phase="before", nth=3)
        assert desk.snapshot().verified_count >= done
    assert desk.resume(slow_but_sure) == 66


def test_an_outer_start_counts_only_when_nothing_inside_was_verified(desk: Desk) -> None:
    """A long outer step that gets further each time is no step that always kills its process."""

    @step
    def inner_item(number: int) -> int:
        return number

    @step
    def outer_items() -> int:
        return sum(inner_item(n) for n in range(8))

    @task
    def nested_items() -> int:
        return outer_items()

    for _ in range(6):
        desk.dies(nested_items, at="body", phase="before", nth=4)  # the task, outer, one more item, then dead
    assert desk.snapshot().steps["outer_items"].starts == 1
    assert desk.resume(nested_items) == 28


def test_an_outer_start_counts_when_nothing_inside_gets_further(desk: Desk) -> None:
    @step
    def stuck_item() -> int:
        ran.append("item")
        return 1

    @step
    def stuck_outer() -> int:
        return stuck_item()

    @task
    def nested_stuck() -> int:
        return stuck_outer()

    for _ in range(3):
        desk.dies(nested_stuck, at="body", phase="before", nth=3)
    with pytest.raises(AttemptsUsed, match="stuck_outer"):
        desk.resume(nested_stuck)
    assert ran == []


def test_an_orderly_stop_gives_the_start_back(desk: Desk) -> None:
    """A deploy every hour must not use up the attempts of a step that takes two."""
    stops = [True] * 5

    @step
    def long_work() -> int:
        scope = current.get()
        assert scope is not None
        if stops:
            stops.pop()
            scope.run.stop(15)
            return inner_work()
        return 1

    @step
    def inner_work() -> int:
        return 1

    @task
    def deployed() -> int:
        return long_work()

    for _ in range(5):
        with pytest.raises(RunInterrupted):
            desk.run(deployed)
        assert desk.status() == "interrupted"
        assert desk.snapshot().steps["long_work"].starts == 0
    assert desk.resume(deployed) == 1


def test_a_stop_between_two_steps_keeps_the_first(desk: Desk) -> None:
    @step
    def asks_to_stop() -> int:
        scope = current.get()
        assert scope is not None
        scope.run.stop(1)
        return 4

    @task
    def stopped_between() -> int:
        return second_of_two(asks_to_stop())

    with pytest.raises(RunInterrupted) as stopped:
        desk.run(stopped_between)
    assert stopped.value.exit_status == 129
    assert ran == []
    assert desk.snapshot().steps["asks_to_stop"].verified is not None
    assert desk.resume(stopped_between) == 40


# ── cancel ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_cancelled_run_that_nobody_runs_ends_at_its_next_start(desk: Desk) -> None:
    desk.dies(two_steps, 1, at="body", phase="before", nth=3)
    desk.cancel()
    with pytest.raises(RunEnded, match="cancelled"):
        desk.resume(two_steps)
    assert desk.status() == "cancelled"
    assert ran == ["first"]
    with pytest.raises(RunEnded, match="cancelled"):
        desk.run(two_steps, 1)


def test_a_cancelled_run_looks_up_its_open_intents_first(desk: Desk) -> None:
    """Cancelled is not undone: what the provider has belongs into the record."""
    provider = Provider(desk.clock)
    plan = posting(provider, lookup=True)
    desk.dies(plan, "INV-7", at="send")
    desk.cancel()
    with pytest.raises(RunEnded, match="cancelled"):
        desk.resume(plan)
    assert desk.records("outcome_recorded")[-1].ref == "receipt-1"
    assert len(provider.calls) == 1


def test_a_cancelled_run_sends_nothing_again(desk: Desk) -> None:
    provider = Provider(desk.clock)
    plan = posting(provider, lookup=True)
    desk.dies(plan, "INV-7", at="send", phase="before")
    desk.cancel()
    with pytest.raises(RunEnded, match="cancelled"):
        desk.resume(plan)
    assert provider.calls == []


def test_a_cancelled_run_with_an_open_question_still_proves_itself(desk: Desk) -> None:
    """A question that nobody has to answer any more is closed in the inbox, and no sign of a forged one."""
    for _ in range(3):
        desk.dies(two_steps, 1, at="body", phase="before", nth=2)
    with pytest.raises(AttemptsUsed):
        desk.resume(two_steps)
    desk.cancel()
    with pytest.raises(RunEnded, match="cancelled"):
        desk.resume(two_steps)
    assert desk.questions == []
    assert [v.found for v in verify_run(desk.store, "r", None, {}) if not v.ok] == []


@pytest.mark.parametrize("choice", ["applied", "not-applied"])
def test_a_cancelled_run_asks_about_what_cannot_be_looked_up(desk: Desk, choice: str) -> None:
    provider = Provider(desk.clock)
    plan = posting(provider)
    desk.dies(plan, "INV-7", at="send")
    desk.cancel()
    with pytest.raises(OutcomeUnknown, match="cancelled"):
        desk.resume(plan)
    desk.answer(choice)
    with pytest.raises(RunEnded, match="cancelled"):
        desk.resume(plan)
    assert len(provider.calls) == 1
    assert desk.questions == []


def test_cancelling_a_run_that_asks_needs_no_answer(desk: Desk, tmp_path: Path) -> None:
    """Whether a changed file is kept or redone matters to nobody any more."""
    path = tmp_path / "orders.csv"
    path.write_text("1")

    @step
    def reads_orders(path: Path) -> str:
        return path.read_text()

    @task
    def read_once() -> str:
        return reads_orders(path)

    desk.dies_at_its_end(read_once)
    path.write_text("2")
    with pytest.raises(SourceChanged):
        desk.resume(read_once)
    desk.cancel()
    with pytest.raises(RunEnded, match="cancelled"):
        desk.resume(read_once)
    assert desk.questions == []


def test_cancelling_a_run_that_is_under_way_lets_what_runs_end(desk: Desk) -> None:
    @step
    def cancels_itself() -> int:
        desk.cancel()
        scope = current.get()
        assert scope is not None
        scope.run.cancel()
        return 4

    @task
    def cancelled_midway() -> int:
        return second_of_two(cancels_itself())

    with pytest.raises(RunEnded, match="cancelled"):
        desk.run(cancelled_midway)
    assert desk.status() == "cancelled"
    assert ran == []
    assert desk.snapshot().steps["cancels_itself"].verified is not None


# ── what a resume finds ─────────────────────────────────────────────────────────────────────────────


def test_dying_in_a_verifier_does_not_repeat_the_body(desk: Desk) -> None:
    """The output is kept before it is verified: an expensive body runs once."""
    checks: list[int] = []

    def not_negative(output: int) -> bool:
        checks.append(output)
        return output >= 0

    @step(verify=not_negative)
    def checked_once() -> int:
        ran.append("body")
        return 7

    @step
    def after_check(number: int) -> int:
        return number

    @task
    def checked() -> int:
        return after_check(checked_once())

    desk.dies(checked, at="append:step_verified", phase="before")
    kept = desk.records("output_recorded")
    assert desk.resume(checked) == 7
    assert ran == ["body"] * (1 if kept else 2)


def test_a_failed_check_is_recorded_and_the_body_runs_again(desk: Desk) -> None:
    answers = [-1, 7]

    def is_positive(output: int) -> str | None:
        return None if output > 0 else f"{output} is not positive"

    @step(verify=is_positive)
    def checked_twice() -> int:
        ran.append("body")
        return answers.pop(0)

    @task
    def rechecked() -> int:
        return checked_twice()

    with pytest.raises(StepFailed, match="is_positive: -1 is not positive"):
        desk.run(rechecked)
    assert desk.resume(rechecked) == 7
    (verified,) = desk.records("step_verified")
    assert verified.checks == ("is_positive",)


def test_the_next_attempt_reads_the_cursor_of_the_last(desk: Desk) -> None:
    seen: list[Any] = []

    @step
    def pages() -> int:
        last = last_heartbeat()
        seen.append(None if last is None else (last.done, last.total, last.cursor))
        heartbeat(3, 10, "page three", cursor={"page": 3})
        if len(seen) == 1:
            raise ValueError("connection reset")
        return 10

    @task
    def paged() -> int:
        return pages()

    with pytest.raises(StepFailed):
        desk.run(paged)
    assert desk.resume(paged) == 10
    assert seen == [None, (3, 10, {"page": 3})]


def test_an_open_intent_inside_a_step_keeps_it_from_being_verified(desk: Desk) -> None:
    """A verified step hides what is inside it; nothing in doubt may be hidden."""
    provider = Provider(desk.clock)

    @effect(provider="accounting")
    def post_inside(key: Key) -> str:
        return provider.apply(key, "x")

    @step
    def swallows() -> str:
        try:
            return post_inside()
        except StepFailed:
            return "never mind"

    @task
    def swallowing() -> str:
        return second(swallows())

    @step
    def second(text: str) -> str:
        ran.append("second")
        return text

    provider.will_lose_its_answer()
    with pytest.raises(OutcomeUnknown, match="swallows has ended, but nobody knows whether swallows/post_inside"):
        desk.run(swallowing)
    assert ran == []
    assert desk.snapshot().steps["swallows"].starts == 0
    desk.answer("applied", ref="receipt-1", result="receipt-1")
    assert desk.resume(swallowing) == "receipt-1"
    assert len(provider.calls) == 1


def test_a_wait_in_the_foreground_goes_to_its_time(desk: Desk) -> None:
    """And whoever watches is told until when and why."""
    told: list[tuple[str, str]] = []
    left = [1]

    @step(retry=Retry(on=ValueError, first_wait=timedelta(minutes=3)))
    def busy_first() -> int:
        if left:
            left.pop()
            raise ValueError("busy")
        return 1

    @task
    def waits() -> int:
        return busy_first()

    at = desk.clock.now()
    assert desk.run(waits, waiting=lambda until, reason: told.append((until, reason))) == 1
    assert told[0][0] == (at + timedelta(minutes=3)).isoformat(timespec="microseconds")
    assert "busy_first" in told[0][1]


def test_no_wait_leaves_the_run_waiting_with_its_time(desk: Desk) -> None:
    @step(retry=Retry(on=ValueError, attempts=3, first_wait=timedelta(minutes=3)))
    def always_busy() -> int:
        raise ValueError("busy")

    @task
    def leaves() -> int:
        return always_busy()

    at = desk.clock.now()
    with pytest.raises(RunWaiting) as waiting:
        desk.run(leaves, wait=False)
    assert waiting.value.until == (at + timedelta(minutes=3)).isoformat(timespec="microseconds")
    row = desk.store.run("r")
    assert row is not None
    assert row.progress.status == "waiting"
    assert waiting.value.until in row.progress.detail
    assert waits_until(desk.snapshot()) == waiting.value.until
    assert row.held is None
