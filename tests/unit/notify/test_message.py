"""What people are told: complete, inert, and bounded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from milepost.notify.message import Message, Reason, bundle_message, plain, question_message
from milepost.protocol.questions import ask
from milepost.protocol.snapshot import Snapshot
from milepost.records.model import QuestionKind
from milepost.records.written import encode_record
from milepost.stores.contract import QuestionRow

AT = "2026-11-02T08:00:00.000000+00:00"


def _row(sentence: str = "It asks.", kind: QuestionKind = QuestionKind.OUTCOME_UNKNOWN, **about: object) -> QuestionRow:
    s = Snapshot(record_count=3)
    asked = ask(kind, s, run_id="r 1", at=AT, path="post[7]", sentence=sentence, about=about).question
    return QuestionRow(asked.question_id, "r 1", kind, asked.path, asked.sentence, AT, encode_record(asked))


def _said(row: QuestionRow, url: str = "") -> Message:
    return question_message(row, Reason.ASKED, "pays", url)


def test_a_message_has_the_question_the_run_the_choices_and_the_command() -> None:
    row = _row()
    text = _said(row).text
    for part in ("It asks.", row.question_id, "run r 1, task pays", "applied, not-applied, stop", "milepost inbox q-"):
        assert part in text
    assert "http" not in text


def test_a_link_leads_to_the_question_in_the_console() -> None:
    row = _row()
    assert f"https://mile.test/base/question?id={row.question_id}" in _said(row, "https://mile.test/base/").text


def test_an_approval_says_who_may_approve() -> None:
    row = _row(kind=QuestionKind.APPROVAL, approvers=["finance", "ana@host"], approvals=2)
    assert "May approve: finance, ana@host; 2 must." in _said(row).text
    assert _said(row).data["approvers"] == ["finance", "ana@host"]


def test_the_data_for_a_command_is_inert_as_well() -> None:
    """The command prints it, or hands it on to a page."""
    raw = "pay \u202e7\x1b[2J"
    told = _said(_row(sentence=raw, approvers=[raw])).data
    assert told["approvers"] == ["pay \\u202e7\\x1b[2J"]
    assert told["sentence"].startswith("pay \\u202e7\\x1b[2J")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[click](http://evil.test)", "[click] (http: //evil.test)"),
        ("![x](https://evil.test/a.png)", "! [x] (https: //evil.test/a.png)"),
        ("<!channel> <b>", "‹!channel› ‹b›"),
        ("ana@host told @everyone", "ana@host told (at)everyone"),
        ("www.evil.test", "www .evil.test"),
        ("a\u202eb\x1b[2J\x00\n", "a\\u202eb\\x1b[2J\\x00\\n"),
        ("```x```", "'''x'''"),
        ("post[INV-7] is 3 > 2", "post[INV-7] is 3 › 2"),
    ],
)
def test_text_from_a_run_is_inert(text: str, shown: str) -> None:
    """It is written by a model that reads what strangers send it."""
    assert plain(text) == shown


def test_many_questions_are_counted_not_listed() -> None:
    rows = [replace(_row(), question_id=f"q-{number}") for number in range(500)]
    message = bundle_message(rows, Reason.REMINDER, "pays", "")
    assert message.title == "Reminder: a run still asks 500 questions: r 1 (outcome_unknown)"
    assert "and 490 more" in message.text
    assert len(message.text) < 3000
