"""What is said of who decided: each is named with what they did, and with nothing they did not do."""

from __future__ import annotations

import pytest

from milepost.protocol.state import ApprovalState
from milepost.records.model import AnswerEntered, QuestionAsked, QuestionKind
from milepost.views.approvals import said_of

AT = "2026-11-02T08:00:00.000000+00:00"


def _decided(*given: tuple[str, str]) -> ApprovalState:
    about = {"approvals": 2, "approvers": [], "agents": []}
    kind = QuestionKind.APPROVAL
    question = QuestionAsked(
        at=AT, question_id="q-1", question_kind=kind, path="pay", sentence="Pay?", choices=(), about=about
    )
    answers = [AnswerEntered(at=AT, question_id="q-1", choice=choice, by=by, answered_at=AT) for choice, by in given]
    return ApprovalState(question, 1, answers)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "asks somebody (q-1)"),
        ([("approve", "ana@here")], "approved by ana@here"),
        ([("approve", "ana@here"), ("approve", "bob@here")], "approved by ana@here and bob@here"),
        ([("approve", "ana@here"), ("decline", "bob@here")], "declined by bob@here, approved by ana@here"),
        ([("approve", "ana@here"), ("edit", "bob@here")], "edited by bob@here, approved by ana@here"),
    ],
)
def test_each_is_named_with_what_they_did(given: list[tuple[str, str]], said: str) -> None:
    assert said_of(_decided(*given)) == said
