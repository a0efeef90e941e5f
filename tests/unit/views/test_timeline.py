"""The timeline says when what happened, also across deaths, and never more than the journal does."""

from __future__ import annotations

from datetime import timedelta

from told_records import ZERO, at, began, ended, failed, intent, kept, made, opened, outcome, resumed, started, verified

from milepost.records.model import AnswerEntered, Choice, QuestionAsked, StartReturned, WaitRecorded
from milepost.views.timeline import LANES_MAX, ROWS_MAX, Timeline, timeline, timeline_object


def drawn(*records: object, held: bool = False, now: float = 100.0) -> Timeline:
    return timeline(opened(*records, held=held), ZERO + timedelta(seconds=now))  # type: ignore[arg-type]


def bars(told: Timeline, name: str) -> list[tuple[float, float, str]]:
    row = next(row for row in told.rows if row.name == name)
    return [(bar.start, bar.end, bar.state) for bar in row.bars]


def test_a_step_is_a_bar_from_its_start_to_its_checkpoint() -> None:
    told = drawn(started(0), began(1, "read"), verified(3, "read"), ended(4))
    assert bars(told, "read") == [(1.0, 3.0, "verified")]
    assert bars(told, "run") == [(0.0, 4.0, "work")]
    assert [(mark.at, mark.what) for mark in told.marks] == [(0.0, "started"), (4.0, "done")]
    assert told.now == 4.0


def test_items_at_once_are_stacked_and_share_a_row() -> None:
    """Eight parallel items are one row of lanes, not eight rows."""
    records = [began(1, f"match#{n}") for n in range(1, 4)] + [verified(2 + n, f"match#{n}") for n in range(1, 4)]
    told = drawn(started(0), *records, began(7, "match#4"), verified(8, "match#4"), ended(9))
    row = told.rows[1]
    assert (row.name, row.count, row.lanes) == ("match", 4, 3)
    assert sorted(bar.lane for bar in row.bars) == [0, 0, 1, 2]


def test_more_at_once_than_there_are_lanes_are_counted() -> None:
    records = [began(1, f"match#{n}") for n in range(LANES_MAX + 5)]
    told = drawn(started(0), *records, held=True)
    assert told.rows[1].beyond == 5
    assert told.rows[1].lanes == LANES_MAX


def test_what_was_under_way_when_a_process_died_is_lost_at_its_last_record() -> None:
    """Nobody knows when exactly it died: not before its last record, and that is what is said."""
    told = drawn(
        started(0),
        began(1, "read"),
        began(2, "match"),
        resumed(50),
        began(51, "read", 2),
        verified(52, "read"),
        ended(53),
    )
    assert bars(told, "read") == [(1.0, 2.0, "lost"), (51.0, 52.0, "verified")]
    assert bars(told, "match") == [(1.0 + 1.0, 2.0, "lost")]
    assert [mark.what for mark in told.marks] == ["started", "died", "resumed", "done"]
    assert bars(told, "run") == [(0.0, 2.0, "work"), (50.0, 53.0, "work")]


def test_a_run_nobody_works_on_ends_at_its_last_record_and_one_that_is_held_goes_on_to_now() -> None:
    assert drawn(started(0), began(1, "read")).now == 100.0
    assert bars(drawn(started(0), began(1, "read")), "read") == [(1.0, 1.0, "lost")]
    assert bars(drawn(started(0), began(1, "read"), held=True), "read") == [(1.0, 100.0, "running")]


def test_a_run_whose_holder_is_known_to_be_dead_ends_at_its_last_record() -> None:
    """Its lease still stands in its row; what is said is what this machine knows."""
    told = timeline(opened(started(0), began(1, "read"), held=True), ZERO + timedelta(seconds=100), is_dead=True)
    assert bars(told, "read") == [(1.0, 1.0, "lost")]
    assert [mark.what for mark in told.marks] == ["started", "died"]


def test_an_intent_without_an_outcome_stays_in_doubt_across_deaths_until_it_is_settled() -> None:
    """The one colour that asks for attention: what may have happened outside."""
    doubt = [started(0), intent(1, "post"), resumed(10)]
    assert bars(drawn(*doubt, held=True), "post") == [(1.0, 100.0, "doubt")]
    settled = drawn(*doubt, outcome(20, "post", recovered=True, ref="R-1"), ended(21))
    assert bars(settled, "post") == [(1.0, 20.0, "doubt"), (20.0, 20.0, "applied")]


def test_a_send_that_is_answered_is_a_bar_and_one_sent_again_is_two() -> None:
    told = drawn(started(0), intent(1, "post"), outcome(2, "post"), ended(3))
    assert bars(told, "post") == [(1.0, 2.0, "applied")]
    again = drawn(
        started(0), intent(1, "post"), outcome(2, "post", "unknown"), intent(5, "post", 2), outcome(6, "post"), ended(7)
    )
    assert [state for *_, state in bars(again, "post")] == ["doubt", "rejected", "applied"]


def test_failures_returned_starts_waits_and_questions_are_shown_as_what_they_are() -> None:
    question = made(QuestionAsked, at(9), "q-1", "attempts_used", "read", "Again?", (Choice("again", "…"),))
    told = drawn(
        started(0),
        began(1, "read"),
        failed(2, "read"),
        made(WaitRecorded, at(2), "read", at(5), "its retry"),
        began(5, "read", 2),
        made(StartReturned, at(6), "read", 2),
        ended(7, "interrupted"),
        resumed(8),
        question,
        ended(9, "asking"),
        resumed(50, 2),
        made(AnswerEntered, at(50), "q-1", "again", "ana@host", at(40)),
        ended(51),
    )
    tried = [(1.0, 2.0, "failed"), (2.0, 5.0, "wait"), (5.0, 6.0, "returned")]
    assert bars(told, "read") == [*tried, (9.0, 40.0, "asking")]
    assert [mark.what for mark in told.marks if mark.what in ("died", "answered")] == ["answered"]


def test_a_step_that_is_reviewed_took_as_long_as_its_body_whenever_somebody_looked() -> None:
    """Days of waiting for a person are no work: the bar ends where the question begins."""
    review = made(QuestionAsked, at(4), "q-1", "approval", "draft", "Stand?", (Choice("approve", "…"),))
    asks = [started(0), began(1, "draft"), kept(3, "draft"), review, ended(4, "asking")]
    assert bars(drawn(*asks), "draft") == [(1.0, 4.0, "returned"), (4.0, 100.0, "asking")]
    dies = drawn(*asks[:-1], resumed(50), ended(51, "asking"))
    assert bars(dies, "draft") == [(1.0, 4.0, "returned"), (4.0, 100.0, "asking")]
    answered = [resumed(90, 2), made(AnswerEntered, at(90), "q-1", "approve", "ana@host", at(80))]
    stands = drawn(*asks, *answered, verified(91, "draft"), ended(92))
    assert bars(stands, "draft") == [(1.0, 4.0, "verified"), (4.0, 80.0, "asking")]
    declined = drawn(*asks, *answered, failed(91, "draft"), began(92, "draft", 2), verified(93, "draft"), ended(94))
    assert bars(declined, "draft") == [(1.0, 4.0, "failed"), (4.0, 80.0, "asking"), (92.0, 93.0, "verified")]
    redone = drawn(*asks, *answered, began(92, "draft", 2), verified(93, "draft"), ended(94))
    assert bars(redone, "draft") == [(1.0, 4.0, "returned"), (4.0, 80.0, "asking"), (92.0, 93.0, "verified")]


def test_calls_that_ask_before_they_start_have_a_row_of_their_own() -> None:
    """Three approvals asked for at once are three bars of one row, which becomes an effect's when it is sent."""
    asks = [
        made(QuestionAsked, at(1), f"q-{n}", "approval", f"tell[{n}]", "Tell?", (Choice("approve", "…"),))
        for n in range(3)
    ]
    told = drawn(started(0), *asks, ended(2, "asking"), now=9.0)
    assert bars(told, "tell") == [(1.0, 9.0, "asking")] * 3
    assert (told.rows[1].kind, told.rows[1].count, told.rows[1].lanes) == ("call", 3, 3)
    assert drawn(started(0), *asks, resumed(3), intent(4, "tell[0]")).rows[1].kind == "effect"


def test_a_checkpoint_of_an_output_kept_before_a_death_begins_with_the_resume() -> None:
    """The body ran before the death; what runs afterwards is its verification."""
    told = drawn(started(0), began(1, "read"), resumed(10), verified(11, "read"), ended(12))
    assert bars(told, "read") == [(1.0, 1.0, "lost"), (10.0, 11.0, "verified")]


def test_inner_rows_stand_below_their_step_and_rows_are_bounded() -> None:
    told = drawn(started(0), began(1, "a"), began(2, "a/x"), began(3, "b"), began(4, "a/x#2"), held=True)
    assert [(row.name, row.depth) for row in told.rows] == [("run", 0), ("a", 0), ("x", 1), ("b", 0)]
    many = drawn(started(0), *(began(1, f"s{n}") for n in range(ROWS_MAX + 9)), held=True)
    assert (len(many.rows), many.rows_left_out) == (ROWS_MAX, 10)


def test_a_clock_that_runs_backward_draws_nothing_backward() -> None:
    told = drawn(started(10), began(5, "read"), verified(3, "read"), ended(2))
    assert all(start <= end for row in told.rows for start, end, _ in bars(told, row.name))


def test_a_journal_without_records_is_an_empty_picture_and_all_is_plain_data() -> None:
    assert drawn().rows == []
    told = timeline_object(drawn(started(0), began(1, "read"), verified(2, "read"), ended(3)))
    assert told["rows"][1]["bars"][0]["state"] == "verified"
    assert told["marks"][0]["what"] == "started"
