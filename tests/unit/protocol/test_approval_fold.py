"""What a journal says of approvals, folded record by record; a decision never waits for what is moot."""

from __future__ import annotations

from typing import Any

import pytest

from milepost.protocol.decide import Continue, StillAsking, World, decide
from milepost.protocol.fold import fold_record
from milepost.protocol.questions import ask
from milepost.protocol.snapshot import Snapshot
from milepost.protocol.state import settled_after
from milepost.records.model import (
    AnswerEntered,
    IntentRecorded,
    Outcome,
    OutcomeRecorded,
    Pointer,
    QuestionAsked,
    QuestionKind,
    RunStarted,
)

AT = "2026-11-02T08:00:00.000000+00:00"
POINTER = Pointer("d" * 64, 2)


def question(**about: Any) -> QuestionAsked:
    facts = {"when": "before", "approvals": 1, "planned": "p", "request": "p", "binding": "b", **about}
    asked = ask(QuestionKind.APPROVAL, Snapshot(), run_id="r", at=AT, path="post", sentence="?", about=facts)
    return asked.question


def started(*records: Any) -> Snapshot:
    s = Snapshot()
    about: dict[str, Any] = {"task": "t", "target": "m:t", "folder": "/", "family": "r", "versions": {}}
    fold_record(s, RunStarted(at=AT, inputs=POINTER, inputs_fingerprint="f", agent="agent:t@host", **about))
    for record in records:
        fold_record(s, record)
    return s


def sent(answer: str | None = None) -> IntentRecorded:
    about: dict[str, Any] = {"effect": "post", "provider": "p", "request": POINTER, "request_digest": "d"}
    return IntentRecorded(at=AT, path="post", attempt=1, key="k", answer=answer, **about)


def answer(asked: QuestionAsked, choice: str, by: str) -> AnswerEntered:
    return AnswerEntered(at=AT, question_id=asked.question_id, choice=choice, by=by, answered_at=AT)


@pytest.mark.parametrize(
    ("needed", "choices", "after"),
    [
        (1, [], 0),
        (1, ["approve"], 1),
        (2, ["approve"], 0),
        (2, ["approve", "approve", "approve"], 2),
        (3, ["approve", "decline", "approve"], 2),
        (2, ["edit", "approve"], 1),
        (3, ["approve", "approve", "redo"], 3),
    ],
)
def test_how_many_answers_settle_a_question(needed: int, choices: list[str], after: int) -> None:
    assert settled_after(question(approvals=needed), choices) == after


def test_a_question_of_another_kind_is_settled_by_its_first_answer() -> None:
    asked = ask(QuestionKind.ATTEMPTS_USED, Snapshot(), run_id="r", at=AT, path="p", sentence="?").question
    assert settled_after(asked, ["again", "stop"]) == 1


def test_a_question_stays_open_until_it_is_settled() -> None:
    asked = question(approvals=2)
    s = started(asked, answer(asked, "approve", "ada"))
    assert list(s.questions) == [asked.question_id]
    assert isinstance(decide(s, World(AT, "r", sources=(), versions=())), StillAsking)
    fold_record(s, answer(asked, "approve", "bob"))
    assert (list(s.questions), [a.by for a in s.approvals["post"].given]) == ([], ["ada", "bob"])
    assert isinstance(decide(s, World(AT, "r", sources=(), versions=())), Continue)


def test_what_happened_after_all_waits_for_no_approval() -> None:
    """A late landing, or what somebody says to another question: the approval is void and nobody is kept waiting."""
    intent = sent()
    asked = question()
    s = started(
        intent, asked, OutcomeRecorded(at=AT, path="post", attempt=1, outcome=Outcome.APPLIED, key="k", late=True)
    )
    assert (list(s.questions), list(s.void)) == ([], [asked.question_id])
    assert s.approvals == {}, "another send of it would wait for ever for an answer to what is not asked any more"
    assert isinstance(decide(s, World(AT, "r", sources=(), versions=(), lookups={})), Continue)


def test_an_answer_to_what_nobody_asked_is_no_record_of_this_run() -> None:
    with pytest.raises(KeyError):
        started(answer(question(), "approve", "ada"))


def test_an_intent_that_rests_on_an_approval_is_what_uses_it() -> None:
    asked = question()
    s = started(asked, answer(asked, "approve", "ada"))
    assert not s.approvals["post"].acted
    fold_record(s, sent(answer=asked.question_id))
    assert s.approvals["post"].acted


def test_whoever_ran_it_is_remembered() -> None:
    assert started().agents == {"agent:t@host"}
