"""Health counts what runs went through; saved work is what a resume would have had to do again."""

from __future__ import annotations

from decimal import Decimal

import pytest
from told_records import at, began, ended, failed, intent, kept, made, opened, outcome, resumed, started, verified

from milepost.records.model import AnswerEntered, Choice, QuestionAsked, WaitRecorded
from milepost.views.health import facts_of, health


def test_a_death_is_a_resume_after_no_orderly_end() -> None:
    facts = facts_of(opened(started(0), began(1, "a"), resumed(5), ended(6, "interrupted"), resumed(9, 2), ended(10)))
    assert (facts.resumes, facts.deaths) == (2, 1)


def test_saved_work_counts_what_stood_at_each_resume_and_inner_steps_once() -> None:
    """An outer step's time holds that of the steps inside it."""
    records = [
        started(0),
        verified(1, "a", took=10.0, cost="0.5"),
        verified(2, "b/x", took=3.0, cost="0.1"),
        resumed(3),  # a and b/x are not repeated: 13 s
        verified(4, "b", took=5.0, cost="0.1"),
        resumed(5, 2),  # a and b: 15 s
        ended(6),
    ]
    facts = facts_of(opened(*records))
    assert facts.saved_s == pytest.approx(13 + 15)
    assert facts.saved_cost == Decimal("0.6") + Decimal("0.6")


def test_failures_doubts_waits_questions_and_latencies_are_counted() -> None:
    records = [
        started(0),
        began(1, "a#1"),
        failed(2, "a#1"),
        failed(3, "a#2"),
        made(WaitRecorded, at(3), "a#1", at(7), "its retry"),
        kept(8, "a#1"),
        verified(8.5, "a#1"),
        intent(9, "post"),
        outcome(10, "post", "unknown"),
        made(QuestionAsked, at(11), "q-1", "outcome_unknown", "post", "?", (Choice("applied", "…"),)),
        ended(11, "asking"),
        resumed(20),
        made(AnswerEntered, at(20), "q-1", "applied", "ana@host", at(17)),
        ended(21, "waiting", until=at(31), reason="later"),
    ]
    facts = facts_of(opened(*records))
    assert facts.failures == {("a", "TimeoutError"): 2}
    assert (facts.doubts, facts.deaths) == (1, 0)
    assert (facts.waits, facts.waited_s) == (2, 14.0)
    assert (facts.questions, facts.asked_s) == (1, 6.0)
    assert facts.latencies_s == [0.5]


def test_a_checkpoint_that_waited_for_a_review_or_a_resume_says_nothing_of_how_long_checkpoints_take() -> None:
    waited = [kept(1, "a"), ended(2, "asking"), resumed(90), verified(91, "a")]
    assert facts_of(opened(started(0), *waited, kept(92, "b"), verified(93, "b"))).latencies_s == [1.0]


def test_runs_are_summed_in_all_and_by_the_day_they_were_started() -> None:
    one = facts_of(opened(started(0), verified(1, "a"), resumed(2), ended(3)))
    other = facts_of(opened(started(0), ended(1)))
    other.day = "2026-11-02"
    told = health([one, other])
    assert (told["runs"], told["deaths"], told["saved_s"]) == (2, 1, 1.0)
    assert [(day["day"], day["runs"], day["deaths"]) for day in told["days"]] == [
        ("2026-11-01", 1, 1),
        ("2026-11-02", 1, 0),
    ]
    assert told["latency_s"] is None
    assert [run["run_id"] for run in told["most_deaths"]] == ["r"]


def test_nothing_is_told_of_no_runs() -> None:
    told = health([])
    assert (told["runs"], told["days"], told["failures"], told["saved_cost"]) == (0, [], [], "0")
