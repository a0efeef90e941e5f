"""What people decide about a run: answers to its questions, and requests to end it. Checked before they are written.

The first of each stands. A run with a seal key takes them only from somebody who has it. Every door comes through here.
"""

from __future__ import annotations

from milepost.errors import AlreadyAnswered, AnswerRefused, CorruptRecord, QuestionUnknown, RunEnded
from milepost.records.canonical import canonical, parse
from milepost.records.identity import Identity
from milepost.records.model import ENDED, Choice, QuestionAsked
from milepost.records.rows import AnswerRow, CancelRow
from milepost.records.seal import Sealer
from milepost.records.written import decode_record
from milepost.runtime.opening import check_key, row_of
from milepost.stores.contract import QuestionRow, RunRow, Store


def find_question(store: Store, question_id: str) -> QuestionRow:
    """Return a question, open or not. Raises: QuestionUnknown."""
    for row in store.questions(closed=True):
        if row.question_id == question_id:
            return row
    raise QuestionUnknown(question_id=question_id, location=store.location)


def asked(row: QuestionRow) -> QuestionAsked:
    """Return what was asked, with its choices, from a question's row. Raises: CorruptRecord when it is no question."""
    try:
        record = decode_record(QuestionAsked.kind, row.body)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        reason = f"the inbox holds what cannot be read: {type(error).__name__}: {error}"
        raise CorruptRecord(run_id=row.run_id, record=f"question {row.question_id}", reason=reason) from error
    assert isinstance(record, QuestionAsked)
    return record


def answer_question(
    store: Store,
    question_id: str,
    choice: str,
    *,
    by: Identity,
    seal_key: bytes | None,
    at: str,
    note: str = "",
    ref: str | None = None,
    result: str | None = None,
) -> AnswerRow:
    """Record what a person decided; `result` is JSON. The run acts on it when it is resumed.

    Every door comes through here; `by` is who it knows to be there, never what somebody typed.

    Raises: QuestionUnknown, AnswerRefused, AlreadyAnswered (the given one is kept in the audit all the same),
    SealKeyMissing, CorruptRecord when the answer that stands was not given with the run's key.
    Crash: as if not given, or given.
    """
    row = find_question(store, question_id)
    _check_needs(question_id, _chosen(row, choice), ref, result)
    data = None if result is None else _json(question_id, result)
    sealer = _sealer(row_of(store, row.run_id), seal_key)
    # Sealed as a later one when it is, so that nobody can make it the one that stands by deleting the first.
    is_first = not any(a.accepted for a in store.answers(row.run_id) if a.question_id == question_id)
    given = sealer.sealed(AnswerRow(question_id, row.run_id, choice, by.name, at, note, ref, data, accepted=is_first))
    stands = store.answer(given)
    if stands != given:
        sealer.check_row(stands)
        raise AlreadyAnswered(question_id=question_id, choice=stands.choice, by=stands.by, at=stands.at)
    return stands


def ask_to_cancel(store: Store, run_id: str, *, seal_key: bytes | None, by: str, at: str, note: str = "") -> None:
    """Ask a run to end; its holder hears of it, or the next resume ends it. The first request stands.

    Raises: RunUnknown, RunEnded, SealKeyMissing.
    Crash: asked or not asked.
    """
    row = row_of(store, run_id)
    if row.progress.status in ENDED:
        raise RunEnded(run_id=run_id, status=row.progress.status)
    store.cancel(_sealer(row, seal_key).sealed(CancelRow(run_id, by, at, note)))


def _sealer(row: RunRow, seal_key: bytes | None) -> Sealer:
    """Return what seals rows about a run: nothing for a run that was started without a key."""
    if row.seal_name is not None:
        check_key(row, seal_key)
    return Sealer(row.run_id, seal_key if row.seal_name is not None else None)


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
    if "result" in choice.needs and result is None:
        reason = (
            f"the choice {choice.name!r} needs --result: what the effect would have returned, as JSON (null if nothing)"
        )
        raise AnswerRefused(question_id=question_id, reason=reason)


def _json(question_id: str, text: str) -> bytes:
    try:
        return canonical(parse(text.encode("utf-8")))
    except ValueError as error:
        reason = f"the result is not JSON ({error}); a text is written as '\"…\"'"
        raise AnswerRefused(question_id=question_id, reason=reason) from None
