"""A task that is as it should be survives everything, and the drill says what it tried."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path

import good_tasks as good
import pytest
from drilling import drilled

from milepost.drill.outcome import KINDS, Verdict
from milepost.drill.telling import lines


def told(report) -> str:
    return "\n".join(lines(report))


@pytest.mark.slow
def test_a_good_task_survives_every_interruption_there_is() -> None:
    """Every crash point, every fault, every damage: nothing twice, nothing left out, nothing run over."""
    report = drilled(good.small, observe=good.ledger, setup=good.desk_of_words)
    assert report.held, told(report)
    assert {outcome.kind for outcome in report.outcomes} == set(KINDS)
    kills = [outcome for outcome in report.outcomes if outcome.kind == "kill"]
    assert len(kills) == report.point_count > 50
    assert {outcome.verdict for outcome in kills} == {Verdict.SURVIVED}


def test_an_asynchronous_task_is_drilled_alike() -> None:
    report = drilled(good.asynchronous, observe=good.ledger, setup=good.desk_of_words, points=4)
    assert report.held, told(report)
    assert report.total()["tried"] >= 20


def test_what_only_a_person_can_know_is_asked_and_then_equal() -> None:
    """The drill knows what happened and answers truthfully: so the rest can be compared as well."""
    report = drilled(
        good.in_doubt,
        *("send:before:1", "send:durable:1", "lost:tell"),
        observe=good.ledger,
        setup=good.desk_of_words,
    )
    assert report.held, told(report)
    assert Counter(outcome.verdict for outcome in report.outcomes) == {Verdict.ASKED: 3}
    assert {outcome.said for outcome in report.outcomes} == {"outcome_unknown"}


def test_setup_lives_as_long_as_its_world_and_gives_it_an_environment() -> None:
    report = drilled(good.needs_setup, setup=good.desk_of_words, points=2)
    assert report.held, told(report)


def test_reading_elsewhere_is_no_side_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the step's own reading nor Milepost's looking at the source; and what is the user's stays unchanged."""
    orders = tmp_path / "orders.sqlite"
    sqlite3.connect(orders).close()
    monkeypatch.setenv("DRILL_ORDERS", str(orders))
    report = drilled(good.reads_elsewhere, points=1)
    assert report.held, told(report)
    assert [outcome.verdict for outcome in report.outcomes if outcome.kind == "source"] == [Verdict.UNTRIED]


def test_the_table_is_one_screen_and_ends_with_the_verdict() -> None:
    report = drilled(good.needs_setup, setup=good.desk_of_words, points=1)
    said = lines(report)
    assert len(said) < 24
    assert max(len(line) for line in said) <= 120
    assert said[-1].startswith("Everything held")


def test_fields_that_differ_anyway_are_named_and_not_compared() -> None:
    """What two undisturbed runs disagree on cannot be held against a killed one."""
    report = drilled(good.restless, points=3)
    assert report.held, told(report)
    assert "stamp$.at" in report.not_compared
    assert "result$.at" in report.not_compared
    assert drilled(good.restless, points=1, ignore=("$.at", "stamp$.at")).not_compared == []


def test_a_task_that_needs_approvals_is_approved_by_the_people_of_the_drill() -> None:
    """Killed before and after each question, answer and send: nothing is paid twice, nothing without approval."""
    report = drilled(
        good.approved,
        *("append:question_asked:done:1", "append:answer_entered+answer_entered:done:1", "send:durable:1"),
        observe=good.ledger,
        setup=good.desk_of_words,
    )
    assert report.held, told(report)
    said = [outcome.said for outcome in report.outcomes if outcome.verdict is Verdict.ASKED]
    assert said == ["approval, approval, approval"]
