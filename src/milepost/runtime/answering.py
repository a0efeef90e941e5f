"""What people decide about a run: answers to its questions, and requests to end it. Checked before they are written.

The first of each stands. A run with a seal key takes them only from somebody who has it. Every door comes through here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

from milepost.errors import AlreadyAnswered, AnswerRefused, CorruptRecord, MilepostError, QuestionUnknown, RunEnded
from milepost.protocol.request import written
from milepost.protocol.state import settled_after
from milepost.records.canonical import Json, canonical, parse
from milepost.records.identity import Identity, is_same_person
from milepost.records.model import ENDED, Choice, QuestionAsked
from milepost.records.rows import AnswerRow, CancelRow
from milepost.records.seal import Sealer
from milepost.records.written import UNREADABLE, decode_record
from milepost.runtime.entitled import refuse_the_agent, role_of
from milepost.runtime.opening import check_key, row_of
from milepost.runtime.shown import check_shown
from milepost.sources import observe, of_path
from milepost.stores.contract import QuestionRow, RunRow, Store


def find_question(store: Store, question_id: str) -> QuestionRow:
    """Return a question, open or not. Raises: QuestionUnknown."""
    for row in store.questions(question_id=question_id):
        return row
    raise QuestionUnknown(question_id=question_id, location=store.location)


def asked(row: QuestionRow) -> QuestionAsked:
    """Return what was asked, with its choices, from a question's row. Raises: CorruptRecord when it is no question."""
    try:
        record = decode_record(QuestionAsked.kind, row.body)
    except UNREADABLE as error:
        reason = f"the inbox holds what cannot be read: {type(error).__name__}: {error}"
        raise CorruptRecord(run_id=row.run_id, record=f"question {row.question_id}", reason=reason) from error
    assert isinstance(record, QuestionAsked)
    return record


def settling(row: QuestionRow, answers: Sequence[AnswerRow]) -> Sequence[AnswerRow]:
    """Return the accepted ones among a question's answers once they settle it; none while more are needed."""
    accepted = sorted((a for a in answers if a.accepted), key=lambda a: a.place)
    if not accepted:
        return ()
    return accepted[: settled_after(asked(row), [a.choice for a in accepted])]


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
    request: str | None = None,
    paths: Sequence[str] = (),
) -> AnswerRow:
    """Record what a person decided. The run acts on it when it is resumed and as many have answered as must.

    Every door comes through here; `by` is who it knows to be there, never what somebody typed. `result` is JSON;
    `request`, for an edit, is the JSON object of arguments that the evidence shows, changed; `paths` are the files
    among them, by the effect's types: what lies there now is what is sent, and one not named here is asked about.
    Raises: QuestionUnknown, AnswerRefused (also of whoever may not, or did already), AlreadyAnswered (kept in the audit
    all the same), SealKeyMissing, CorruptRecord when an answer that stands was not given with the run's key, or when
    the inbox shows another question than the run asks.
    Crash: as if not given, or given.
    """
    row = find_question(store, question_id)
    question, run = asked(row), row_of(store, row.run_id)
    check_answer(row, choice, ref=ref, result=result, request=request)
    check_shown(store, row)
    refuse_the_agent(store, row.run_id, question, by)
    given = AnswerRow(
        question_id,
        row.run_id,
        choice,
        by.name,
        at,
        note,
        ref,
        _json(question_id, "result", result),
        request=_with_files(row, _json(question_id, "request", request), paths, seal_key if run.seal_name else None),
        door=by.door,
        role=role_of(question, by),
    )
    return _placed(store, row, given, _sealer(run, seal_key))


def _placed(store: Store, row: QuestionRow, given: AnswerRow, sealer: Sealer) -> AnswerRow:
    """Give an answer the next place, or keep it for the audit. Raises: AlreadyAnswered, AnswerRefused, CorruptRecord.

    Crash: as if not given, or given.
    """
    while True:  # each time somebody else took a place, of which there are as many as approvals are needed
        there = [a for a in store.answers(row.run_id, row.question_id) if a.accepted]
        for answer in there:
            sealer.check_row(answer)
        settled = settling(row, there)
        if settled:
            stands = settled[-1]
            store.answer(sealer.sealed(replace(given, place=0)))
            raise AlreadyAnswered(question_id=row.question_id, choice=stands.choice, by=stands.by, at=stands.at)
        if row.closed:
            raise AnswerRefused(question_id=row.question_id, reason="it is not open any more: the run ended without it")
        own = next((a for a in there if is_same_person(a.by, given.by)), None)
        if own is not None:
            reason = f"{own.by} answered {own.choice!r} at {own.at}; somebody else must answer as well"
            raise AnswerRefused(question_id=row.question_id, reason=reason)
        placed = sealer.sealed(replace(given, place=len(there) + 1))
        if store.answer(placed) == placed:
            return placed


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


def check_answer(
    row: QuestionRow, choice: str, *, ref: str | None = None, result: str | None = None, request: str | None = None
) -> None:
    """Check that a question offers a choice and that what comes with it is what it takes. Raises: AnswerRefused."""
    _check_needs(row.question_id, choice_of(row, choice), {"ref": ref, "result": result, "request": request})
    _json(row.question_id, "result", result)
    _json(row.question_id, "request", request)


def choice_of(row: QuestionRow, name: str) -> Choice:
    """Return a choice that a question offers. Raises: AnswerRefused, CorruptRecord when it is no question."""
    question = asked(row)
    choices = question.choices
    found = next((choice for choice in choices if choice.name == name), None)
    if found is None:
        names = ", ".join(choice.name for choice in choices)
        reason = f"there is no choice {name!r}; its choices are {names}"
        raise AnswerRefused(question_id=question.question_id, reason=reason)
    return found


_NEEDED = {
    "result": "what the effect would have returned, as JSON (null if nothing)",
    "request": "the arguments to send instead, as the JSON object that the evidence shows",
}
"""What a choice cannot do without, in words; a reference may be unknown."""


def _check_needs(question_id: str, choice: Choice, given: Mapping[str, str | None]) -> None:
    for name, value in given.items():
        if value is not None and name not in choice.needs:
            raise AnswerRefused(question_id=question_id, reason=f"the choice {choice.name!r} takes no {name}")
        if value is None and name in choice.needs and name in _NEEDED:
            reason = f"the choice {choice.name!r} needs --{name}: {_NEEDED[name]}"
            raise AnswerRefused(question_id=question_id, reason=reason)


# ── the files of an edited request ──────────────────────────────────────────────────────────────────


def _with_files(
    row: QuestionRow, arguments: bytes | None, paths: Sequence[str], seal_key: bytes | None
) -> bytes | None:
    """Return arguments with their files as they are now. Of the paths only those count that the person wrote.

    Raises: AnswerRefused when one is not there, or cannot be read.
    """
    if arguments is None or not paths:
        return arguments
    wrote = {str(PurePath(text)) for text in _texts(parse(arguments))}
    files = [_file_now(row.question_id, path, seal_key) for path in dict.fromkeys(paths) if path in wrote]
    return written(arguments, files) if files else arguments


def _file_now(question_id: str, path: str, seal_key: bytes | None) -> dict[str, Json]:
    refuse_absent(question_id, [path])
    try:
        found = observe(of_path(PurePath(path)).descriptor(), seal_key=seal_key)
    except MilepostError as error:
        raise AnswerRefused(question_id=question_id, reason=f"the request names {path}: {error}") from error
    return {"path": found.descriptor["path"], "fingerprint": found.fingerprint}


def refuse_absent(question_id: str, paths: Sequence[str]) -> None:
    """Refuse an edited request that names a file which is not there. Raises: AnswerRefused."""
    for path in paths:
        if not os.path.exists(path):
            reason = f"the request names {path}, and there is nothing at {os.path.abspath(path)}"
            raise AnswerRefused(question_id=question_id, reason=reason)


def _texts(value: Json) -> Iterator[str]:
    """Yield every text inside JSON, names too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, dict):
        yield from value
        for part in value.values():
            yield from _texts(part)


NOTHING = "null"
"""The result of an effect that returns nothing, as JSON."""


def believed(question_id: str, result: str | None, said: object) -> tuple[str | None, tuple[str, ...]]:
    """Return the result to record and the paths in a request, of what the process said that checked an answer.

    A task's code ran in it. So what a person gave is recorded as they gave it, whatever it says; of that only the null
    of an effect that returns nothing is taken, and which texts are paths. Raises: AnswerRefused when nothing fits.
    """
    match said:
        case {"error": {"code": AnswerRefused.code, "facts": {"reason": reason}}}:
            raise AnswerRefused(question_id=question_id, reason=str(reason))
    found = said if isinstance(said, dict) else {}
    returns_nothing = result is None and found.get("result") == NOTHING
    paths = found.get("paths")
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        paths = []
    return NOTHING if returns_nothing else result, tuple(paths)


def _json(question_id: str, name: str, text: str | None) -> bytes | None:
    if text is None:
        return None
    try:
        return canonical(parse(text.encode("utf-8")))
    except ValueError as error:
        reason = f"the {name} is not JSON ({error}); a text is written as '\"…\"'"
        raise AnswerRefused(question_id=question_id, reason=reason) from None
