"""Rule 2: what a step read, wrote or returned is not what it was; and inputs that are not what they were."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from desk import Desk
from people import ADA, BOB, says
from provider import Provider

from milepost import Folder, Key, Sql, StepFailed, effect, step, task
from milepost.errors import (
    AlreadyAnswered,
    PlanChanged,
    RequestChanged,
    RunEnded,
    SourceChanged,
    SourceChangedMeanwhile,
)


class Counting:
    """Counts how often each body ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    path = tmp_path / "orders.csv"
    path.write_text("PO-1,10\nPO-2,20\n")
    return path


def counting_lines(orders: Path, count: Counting) -> Any:
    """Read a file in one step, use the result in a second."""

    @step
    def read_orders(path: Path) -> list[str]:
        count.ran.append("read")
        return path.read_text().splitlines()

    @step
    def count_orders(lines: list[str]) -> int:
        count.ran.append("count")
        return len(lines)

    @step
    def greet() -> str:
        count.ran.append("greet")
        return "hello"

    @task
    def orders_counted() -> int:
        greet()
        return count_orders(read_orders(orders))

    return orders_counted


def changed(desk: Desk, orders: Path) -> tuple[Any, Counting]:
    """Bring a run to the question about a file that got a line more."""
    count = Counting()
    plan = counting_lines(orders, count)
    desk.dies_at_its_end(plan)
    orders.write_text("PO-1,10\nPO-2,20\nPO-3,30\n")
    count.ran.clear()
    with pytest.raises(SourceChanged, match=r"orders\.csv changed"):
        desk.resume(plan)
    assert count.ran == []
    return plan, count


def test_a_changed_file_is_asked_about_before_anything_runs(desk: Desk, orders: Path) -> None:
    """The evidence says which file, which steps, and what changed in it."""
    changed(desk, orders)
    (found,) = desk.evidence()
    assert (found["written_by"], found["used_by"]) == (None, ["read_orders"])
    assert found["changes"] == ['line 3 was added: "PO-3,30"']
    assert [choice.name for choice in desk.asked().choices] == ["keep", "redo", "stop"]


def test_keep_makes_the_new_content_the_expected_one(desk: Desk, orders: Path) -> None:
    plan, count = changed(desk, orders)
    desk.answer("keep")
    desk.dies_at_its_end(plan)
    assert count.ran == []
    assert desk.resume(plan) == 2


def test_what_was_kept_is_watched_on(desk: Desk, orders: Path) -> None:
    """Keep is about this change, not about every change to come."""
    plan, _ = changed(desk, orders)
    desk.answer("keep")
    desk.dies_at_its_end(plan)
    orders.write_text("PO-9,90\n")
    with pytest.raises(SourceChanged):
        desk.resume(plan)


def test_redo_runs_the_step_again_and_each_later_one_whose_inputs_differ(desk: Desk, orders: Path) -> None:
    """And none that has nothing to do with it."""
    plan, count = changed(desk, orders)
    desk.answer("redo")
    assert desk.resume(plan) == 3
    assert count.ran == ["read", "count"]


def test_redo_goes_on_after_a_death_in_the_middle(desk: Desk, orders: Path) -> None:
    """The answer stays: the second process asks nothing again."""
    plan, count = changed(desk, orders)
    desk.answer("redo")
    desk.dies(plan, at="body", phase="before", nth=3)
    assert desk.resume(plan) == 3
    assert count.ran == ["read", "count"]


def test_redo_leaves_a_later_step_alone_when_its_inputs_come_out_equal(desk: Desk, orders: Path) -> None:
    count = Counting()

    @step
    def first_order(path: Path) -> str:
        count.ran.append("first")
        return path.read_text().splitlines()[0]

    @step
    def shout(line: str) -> str:
        count.ran.append("shout")
        return line.upper()

    @task
    def first_shouted() -> str:
        return shout(first_order(orders))

    desk.dies_at_its_end(first_shouted)
    orders.write_text("PO-1,10\n")
    with pytest.raises(SourceChanged):
        desk.resume(first_shouted)
    desk.answer("redo")
    count.ran.clear()
    assert desk.resume(first_shouted) == "PO-1,10"
    assert count.ran == ["first"]


def test_stop_ends_the_run_and_closes_its_questions(desk: Desk, orders: Path) -> None:
    plan, count = changed(desk, orders)
    desk.answer("stop")
    with pytest.raises(RunEnded, match="stopped"):
        desk.resume(plan)
    assert (desk.status(), desk.questions, count.ran) == ("stopped", [], [])
    with pytest.raises(RunEnded):
        desk.resume(plan)


def test_the_second_answer_is_told_who_answered_and_kept_in_the_audit(desk: Desk, orders: Path) -> None:
    plan, _ = changed(desk, orders)
    question = desk.question
    says(desk, ADA, "keep", of=question)
    with pytest.raises(AlreadyAnswered, match="'keep' by ada@office"):
        says(desk, BOB, "redo", of=question)
    assert desk.resume(plan) == 2
    assert [(a.choice, a.accepted) for a in desk.store.answers("r")] == [("keep", True), ("redo", False)]


def test_an_unanswered_question_stops_every_resume(desk: Desk, orders: Path) -> None:
    """Nothing runs, nothing is asked twice."""
    plan, count = changed(desk, orders)
    for _ in range(7):
        with pytest.raises(SourceChanged):
            desk.resume(plan)
    assert len(desk.questions) == 1
    assert count.ran == []


def test_touching_a_file_changes_nothing(desk: Desk, orders: Path) -> None:
    """By content, not by time: a restored backup is the same file."""
    count = Counting()
    plan = counting_lines(orders, count)
    desk.dies_at_its_end(plan)
    orders.write_text(orders.read_text())
    assert desk.resume(plan) == 2


def test_a_source_that_is_gone_is_not_put_back_unless_it_was_ours(desk: Desk, orders: Path) -> None:
    count = Counting()
    plan = counting_lines(orders, count)
    desk.dies_at_its_end(plan)
    orders.unlink()
    with pytest.raises(SourceChanged, match="found nothing"):
        desk.resume(plan)
    assert not orders.exists()


def test_a_source_that_changes_while_the_step_runs_fails_the_step(desk: Desk, orders: Path) -> None:
    """Nobody can say which of the two the output was made from."""

    @step
    def disturbed(path: Path) -> str:
        text = path.read_text()
        path.write_text(text + "PO-3,30\n")
        return text

    @task
    def disturbs() -> str:
        return disturbed(orders)

    with pytest.raises((StepFailed, SourceChangedMeanwhile), match="changed while the step was reading it"):
        desk.run(disturbs)
    assert desk.snapshot().steps["disturbed"].verified is None


def test_a_step_that_changes_what_it_is_given_names_it_in_writes(desk: Desk, orders: Path) -> None:
    """What the step left is what a resume expects."""

    @step(writes=["path"])
    def append_order(path: Path) -> int:
        path.write_text(path.read_text() + "PO-3,30\n")
        return len(path.read_text().splitlines())

    @task
    def appends() -> int:
        return append_order(orders)

    desk.dies_at_its_end(appends)
    assert desk.resume(appends) == 3


def test_what_a_step_wrote_is_expected_afterwards(desk: Desk, orders: Path) -> None:
    @step(writes=["path"])
    def truncate(path: Path) -> int:
        path.write_text("")
        return 0

    @task
    def truncates() -> int:
        return truncate(orders)

    desk.dies_at_its_end(truncates)
    orders.write_text("somebody else was here\n")
    with pytest.raises(SourceChanged):
        desk.resume(truncates)


def file_made(tmp_path: Path, count: Counting) -> Any:
    """Write a report in one step, read it in the next."""
    report = tmp_path / "report.txt"

    @step
    def write_report() -> Path:
        count.ran.append("write")
        report.write_text("total 30\n")
        return report

    @step
    def read_report(path: Path) -> str:
        count.ran.append("read")
        return path.read_text()

    @task
    def reported() -> str:
        return read_report(write_report())

    return reported


def test_a_file_that_a_step_returned_is_put_back_when_it_is_gone(desk: Desk, tmp_path: Path) -> None:
    """It was written by A and read by B: both find it again, and neither runs."""
    count = Counting()
    plan = file_made(tmp_path, count)
    desk.dies_at_its_end(plan)
    (tmp_path / "report.txt").unlink()
    count.ran.clear()
    assert desk.resume(plan) == "total 30\n"
    assert (tmp_path / "report.txt").read_text() == "total 30\n"
    assert count.ran == []


def test_a_file_that_is_there_but_different_is_never_overwritten(desk: Desk, tmp_path: Path) -> None:
    """Somebody may have corrected it by hand."""
    count = Counting()
    plan = file_made(tmp_path, count)
    desk.dies_at_its_end(plan)
    (tmp_path / "report.txt").write_text("total 31, corrected by hand\n")
    with pytest.raises(SourceChanged):
        desk.resume(plan)
    assert (tmp_path / "report.txt").read_text() == "total 31, corrected by hand\n"
    desk.answer("keep")
    assert desk.resume(plan) == "total 30\n"
    assert (tmp_path / "report.txt").read_text() == "total 31, corrected by hand\n"


def test_a_file_that_cannot_be_put_back_is_asked_about(desk: Desk, tmp_path: Path) -> None:
    """A dangling link stands in its place: nothing is overwritten, nothing is tried for ever."""
    count = Counting()
    plan = file_made(tmp_path, count)
    desk.dies_at_its_end(plan)
    (tmp_path / "report.txt").unlink()
    (tmp_path / "report.txt").symlink_to(tmp_path / "nowhere")
    with pytest.raises(SourceChanged):
        desk.resume(plan)


def test_a_folder_that_a_step_returned_is_put_back(desk: Desk, tmp_path: Path) -> None:
    made = tmp_path / "batch"

    @step
    def write_batch() -> Path:
        (made / "inner").mkdir(parents=True)
        (made / "a.txt").write_text("a")
        (made / "inner" / "b.txt").write_text("b")
        return made

    @task
    def batched() -> Path:
        return write_batch()

    desk.dies_at_its_end(batched)
    (made / "inner" / "b.txt").unlink()
    (made / "inner").rmdir()
    (made / "a.txt").unlink()
    made.rmdir()
    assert desk.resume(batched) == made
    assert (made / "inner" / "b.txt").read_text() == "b"


def test_a_database_is_watched_by_a_query(desk: Desk, tmp_path: Path) -> None:
    """Rows that the query does not see may change freely."""
    database = tmp_path / "orders.sqlite"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("create table orders (id text, amount int)")
        connection.execute("insert into orders values ('PO-1', 10)")
        connection.execute("create table log (line text)")

    @step(sources=[Sql(database, "select * from orders order by id")])
    def total() -> int:
        with closing(sqlite3.connect(database)) as connection:
            return int(connection.execute("select sum(amount) from orders").fetchone()[0])

    @task
    def totals() -> int:
        return total()

    desk.dies_at_its_end(totals)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("insert into log values ('looked')")
    desk.dies_at_its_end(totals)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("insert into orders values ('PO-2', 20)")
    with pytest.raises(SourceChanged):
        desk.resume(totals)
    desk.answer("redo")
    assert desk.resume(totals) == 30


def test_a_folder_is_watched_by_its_pattern(desk: Desk, tmp_path: Path) -> None:
    mail = tmp_path / "mail"
    mail.mkdir()
    (mail / "1.eml").write_text("one")

    @step(sources=[Folder(mail, "*.eml")])
    def count_mail() -> int:
        return len(list(mail.glob("*.eml")))

    @task
    def mail_counted() -> int:
        return count_mail()

    desk.dies_at_its_end(mail_counted)
    (mail / "notes.txt").write_text("not watched")
    desk.dies_at_its_end(mail_counted)
    (mail / "2.eml").write_text("two")
    with pytest.raises(SourceChanged, match=r"2\.eml"):
        desk.resume(mail_counted)


def test_a_file_among_the_inputs_of_the_run_is_watched(desk: Desk, orders: Path) -> None:
    """Code between the steps may read it: it belongs to the run."""

    @task
    def reads_input(path: Path) -> str:
        return path.read_text()

    desk.dies_at_its_end(reads_input, orders)
    orders.write_text("other\n")
    with pytest.raises(SourceChanged, match=r"orders\.csv"):
        desk.resume(reads_input)
    assert [choice.name for choice in desk.asked().choices] == ["keep", "stop"], "no step would run again"
    desk.answer("keep")
    assert desk.resume(reads_input) == "other\n"


def test_what_an_inner_step_read_is_watched_after_its_outer_step_is_verified(desk: Desk, orders: Path) -> None:
    """The inner records no longer count, so the outer checkpoint carries their sources."""

    @step
    def inner_read(path: Path) -> str:
        return path.read_text()

    @step
    def outer_read(name: str) -> str:
        return inner_read(orders)

    @task
    def nested_read() -> str:
        return outer_read("orders")

    desk.dies_at_its_end(nested_read)
    orders.write_text("other\n")
    with pytest.raises(SourceChanged, match=r"orders\.csv"):
        desk.resume(nested_read)
    desk.answer("redo")
    assert desk.resume(nested_read) == "other\n"


def test_what_an_inner_step_returned_is_put_back_after_its_outer_step_is_verified(desk: Desk, tmp_path: Path) -> None:
    made = tmp_path / "made.txt"

    @step
    def inner_write() -> Path:
        made.write_text("made")
        return made

    @step
    def outer_write() -> str:
        return inner_write().name

    @task
    def nested_write() -> str:
        return outer_write()

    desk.dies_at_its_end(nested_write)
    made.unlink()
    assert desk.resume(nested_write) == "made.txt"
    assert made.read_text() == "made"


# ── inputs of a step ────────────────────────────────────────────────────────────────────────────────


def differing(desk: Desk) -> tuple[Any, list[int]]:
    """Bring a run to where a finished step is given 2 instead of 1 by the code between the steps."""
    given, ran = [1], []

    @step
    def doubled(number: int) -> int:
        ran.append(number)
        return number * 2

    @task
    def doubles() -> int:
        return doubled(given[0])

    desk.dies_at_its_end(doubles)
    given[0] = 2
    with pytest.raises(SourceChanged, match=r"doubled .*1.*2"):
        desk.resume(doubles)
    return doubles, ran


def test_other_inputs_of_a_finished_step_are_asked_about_with_a_diff(desk: Desk) -> None:
    """Its stored output was made from something else."""
    differing(desk)
    assert desk.evidence()["changes"]


@pytest.mark.parametrize(("choice", "result", "ran"), [("keep", 2, [1]), ("redo", 4, [1, 2])])
def test_other_inputs_can_be_kept_or_redone(desk: Desk, choice: str, result: int, ran: list[int]) -> None:
    plan, bodies = differing(desk)
    desk.answer(choice)
    assert desk.resume(plan) == result
    assert bodies == ran


def test_a_redo_covers_what_was_finished_before_it_and_nothing_later(desk: Desk) -> None:
    """A person's redo of Monday does not answer what is asked on Friday."""
    given = [1]

    @step
    def tripled(number: int) -> int:
        desk.clock.move(timedelta(seconds=1))
        return number * 3

    @task
    def triples() -> int:
        return tripled(given[0])

    desk.dies_at_its_end(triples)
    given[0] = 2
    with pytest.raises(SourceChanged):
        desk.resume(triples)
    desk.answer("redo")
    desk.dies_at_its_end(triples)
    desk.clock.move(timedelta(days=4))
    given[0] = 3
    with pytest.raises(SourceChanged):
        desk.resume(triples)


@pytest.mark.parametrize("nth", [1, 2])
def test_other_inputs_kept_inside_a_step_stay_kept_on_every_later_resume(desk: Desk, nth: int) -> None:
    """The answer stands in the run's own chain, the step in one that may not be read: neither makes it corrupt."""
    given = [1]

    @step
    def double(number: int) -> int:
        return number * 2

    @step
    def after(number: int) -> int:
        return number + 1

    @step
    def around() -> int:
        return after(double(given[0]))

    @task
    def plan() -> int:
        return after(around())

    desk.dies(plan, at="body", phase="before", nth=4)
    given[0] = 5
    with pytest.raises(SourceChanged):
        desk.resume(plan)
    desk.answer("keep")
    desk.dies(plan, at="body", phase="before", nth=nth + 2)
    assert desk.resume(plan) == 4


def test_other_inputs_can_stop_the_run(desk: Desk) -> None:
    plan, _ = differing(desk)
    desk.answer("stop")
    with pytest.raises(RunEnded):
        desk.resume(plan)


# ── redo with applied effects downstream ────────────────────────────────────────────────────────────


def posting_totals(desk: Desk, orders: Path, provider: Provider) -> Any:
    """Sum a file, post the total, and post one line per order."""

    @step
    def sum_orders(path: Path) -> list[int]:
        return [int(line.split(",")[1]) for line in path.read_text().splitlines()]

    @effect(provider="accounting")
    def post_count(key: Key, count: int) -> str:
        return provider.apply(key, ["count", count])

    @effect(provider="accounting", key=lambda amount: amount)
    def post_amount(key: Key, amount: int) -> str:
        return provider.apply(key, ["amount", amount])

    @task
    def totals_posted() -> list[str]:
        amounts = sum_orders(orders)
        return [post_count(len(amounts)), *post_amount.map(amounts)]

    return totals_posted


def redone(desk: Desk, orders: Path, text: str) -> tuple[Any, Provider]:
    provider = Provider(desk.clock)
    plan = posting_totals(desk, orders, provider)
    desk.dies_at_its_end(plan)
    orders.write_text(text)
    with pytest.raises(SourceChanged):
        desk.resume(plan)
    desk.answer("redo")
    return plan, provider


def test_redo_returns_recorded_results_for_equal_requests_and_asks_for_changed_ones(desk: Desk, orders: Path) -> None:
    """Applied effects stay: what is asked for again is not sent again, what became different is a person's."""
    plan, provider = redone(desk, orders, "PO-1,10\nPO-2,20\nPO-3,30\n")
    with pytest.raises(RequestChanged, match="post_count"):
        desk.resume(plan)
    desk.answer("keep")
    assert desk.resume(plan) == ["receipt-1", "receipt-2", "receipt-3", "receipt-4"]
    assert [body for _, body, _ in provider.ledger] == [["count", 2], ["amount", 10], ["amount", 20], ["amount", 30]]


def test_redo_lists_applied_effects_that_are_no_longer_called_in_one_question(desk: Desk, orders: Path) -> None:
    """They happened and nobody wants them any more: a person must know all of them."""
    plan, provider = redone(desk, orders, "PO-8,80\nPO-9,90\n")
    with pytest.raises(PlanChanged):
        desk.resume(plan)
    assert desk.evidence()["not_called_again"] == ["post_amount[10]", "post_amount[20]"]
    desk.answer("accept")
    assert desk.resume(plan) == ["receipt-1", "receipt-4", "receipt-5"]
    assert len(provider.ledger) == 5
