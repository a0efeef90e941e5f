"""Answering a question: checked here, before it is written; the first answer stands. Called by the command line."""

from __future__ import annotations

from milepost.errors import AlreadyAnswered, AnswerRefused, QuestionUnknown
from milepost.records.canonical import canonical, parse
from milepost.records.model import Choice, QuestionAsked
from milepost.records.rows import AnswerRow
from milepost.records.written import decode_record
from milepost.stores.contract import QuestionRow, Store


def find_question(store: Store, question_id: str) -> QuestionRow:
    """Return a question, open or not. Raises: QuestionUnknown."""
    for row in store.questions(closed=True):
        if row.question_id == question_id:
            return row
    raise QuestionUnknown(question_id=question_id, location=store.location)


def asked(row: QuestionRow) -> QuestionAsked:
    """Return what was asked, with its choices, from a question's row."""
    record = decode_record("question_asked", row.body)
    assert isinstance(record, QuestionAsked)
    return record


def answer_question(
    store: Store,
    question_id: str,
    choice: str,
    *,
    by: str,
    at: str,
    note: str = "",
    ref: str | None = None,
    result: str | None = None,
) -> AnswerRow:
    """Record what a person decided; `result` is JSON. The run acts on it when it is resumed.

    Raises: QuestionUnknown, AnswerRefused, AlreadyAnswered (the given one is kept in the audit all the same).
    Crash: as if not given, or given.
    """
    row = find_question(store, question_id)
    _check_needs(question_id, _chosen(row, choice), ref, result)
    data = None if result is None else _json(question_id, result)
    given = AnswerRow(question_id, row.run_id, choice, by, at, note, ref, data)
    stands = store.answer(given)
    if stands != given:
        raise AlreadyAnswered(question_id=question_id, choice=stands.choice, by=stands.by, at=stands.at)
    return stands


def _chosen(row: QuestionRow, name: str) -> Choice:
    choices = asked(row).choices
    found = next((choice for choice in choices if choice.name == name), None)
    if found is None:
        names = ", ".join(choice.name for choice in choices)
        raise AnswerRefused(question_id=row.question_id, reason=f"there is no choice {name!r}; its choices are {names}")
    return found


def _check_needs(question_id: str, choice: Choice, ref: str | None, result: str | None) -> None:
    for name, given in (("ref", ref), ("result", result)):
        if given is not None and name not in choice.needs:
            raise AnswerRefused(question_id=question_id, reason=f"the choice {choice.name!r} takes no {name}")


def _json(question_id: str, text: str) -> bytes:
    try:
        return canonical(parse(text.encode("utf-8")))
    except ValueError as error:
        reason = f"the result is not JSON ({error}); a text is written as '\"…\"'"
        raise AnswerRefused(question_id=question_id, reason=reason) from None
