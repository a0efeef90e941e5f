"""The written policy of a step, and the table of what a person may be asked and may say."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from milepost import Retry
from milepost.errors import BadOption
from milepost.protocol.failure import VerificationFailed
from milepost.protocol.policy import WAIT_MAX, retry_after
from milepost.protocol.questions import CHOICES, ask
from milepost.protocol.snapshot import Snapshot
from milepost.records.model import QuestionKind

KIND_CHOICES = {
    QuestionKind.SOURCE_CHANGED: ["keep", "redo", "stop"],
    QuestionKind.REQUEST_CHANGED: ["keep", "send", "stop"],
    QuestionKind.PLAN_CHANGED: ["accept", "stop"],
    QuestionKind.VERSIONS_CHANGED: ["accept", "redo", "stop"],
    QuestionKind.OUTCOME_UNKNOWN: ["applied", "not-applied", "stop"],
    QuestionKind.ATTEMPTS_USED: ["again", "stop"],
    QuestionKind.LIMIT_REACHED: ["again", "stop"],
    QuestionKind.APPROVAL: ["approve", "edit", "redo", "decline"],
    QuestionKind.STORE_WENT_BACK: ["go-on-in-doubt", "stop"],
    QuestionKind.SHADOW_RESULT_NEEDED: ["give", "again", "stop"],
}


def test_every_kind_of_question_has_the_choices_of_the_design() -> None:
    """Scripts answer by these names: they do not change."""
    assert {kind: [choice.name for choice in choices] for kind, choices in CHOICES.items()} == KIND_CHOICES


def test_every_choice_says_what_it_will_do() -> None:
    for choices in CHOICES.values():
        assert all(choice.does.endswith(".") and len(choice.does) > 20 for choice in choices)


def test_two_questions_of_one_run_have_different_ids() -> None:
    """An answer to the first must never be taken for one to the second, also when they ask the same."""

    def asked(number: int) -> str:
        kind, s = QuestionKind.ATTEMPTS_USED, Snapshot(record_count=number)
        return ask(kind, s, run_id="r", at="now", path="p", sentence="?").question.question_id

    assert asked(7) == asked(7)
    assert len({asked(number) for number in range(100)}) == 100


@pytest.mark.parametrize(
    "options",
    [
        {"on": ()},
        {"on": "ValueError"},
        {"on": KeyboardInterrupt},
        {"on": ValueError, "attempts": 0},
        {"on": ValueError, "attempts": True},
        {"on": ValueError, "attempts": 1001},
        {"on": ValueError, "factor": 0.5},
        {"on": ValueError, "first_wait": timedelta(seconds=-1)},
        {"on": ValueError, "first_wait": timedelta(hours=1)},
        {"on": ValueError, "then": "ignore"},
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_where_it_is_written(options: dict[str, Any]) -> None:
    with pytest.raises(BadOption, match="Retry"):
        Retry(**options)


def test_a_policy_covers_an_exception_by_its_class_or_its_cause() -> None:
    """A client library wraps the timeout: the policy named the timeout."""
    policy = Retry(on=TimeoutError)
    wrapped = RuntimeError("client failed")
    wrapped.__cause__ = TimeoutError()
    assert policy.covers(TimeoutError())
    assert policy.covers(wrapped)
    assert not policy.covers(ValueError())
    assert Retry(on=VerificationFailed).covers(VerificationFailed("rows", "none"))


def test_waits_grow_and_are_bounded_however_many_attempts_there_were() -> None:
    policy = Retry(on=ValueError, attempts=1000, first_wait=timedelta(seconds=1), factor=10.0)
    waits = [policy.wait(attempt) for attempt in (1, 2, 3, 4, 999)]
    assert waits == [timedelta(seconds=s) for s in (1, 10, 100, 300, 300)]


class Told(Exception):
    """An exception that says when to come back."""

    def __init__(self, retry_after: object) -> None:
        super().__init__("later")
        self.retry_after = retry_after


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        (30, timedelta(seconds=30)),
        (0.5, timedelta(seconds=0.5)),
        (timedelta(minutes=2), timedelta(minutes=2)),
        (timedelta(days=900), WAIT_MAX),
        (float("inf"), WAIT_MAX),
        (-1, None),
        (float("nan"), None),
        (True, None),
        ("30", None),
        (None, None),
    ],
)
def test_retry_after_is_believed_within_reason(said: object, heard: timedelta | None) -> None:
    assert retry_after(Told(said)) == heard
