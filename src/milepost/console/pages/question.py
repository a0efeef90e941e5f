"""One question with its evidence, its choices and what happens next; and the one place where the console answers.

Who answers is the visitor the gate has proven, never a field of the form. Whether they may is judged below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from milepost.console.pages.asked import Asked
from milepost.console.shown import link as link_to
from milepost.console.wiring import Console
from milepost.errors import AnswerRefused, MilepostError, NotEncodable
from milepost.records.canonical import canonical, parse
from milepost.records.identity import Identity
from milepost.records.rows import AnswerRow
from milepost.runtime.answering import answer_question, asked, believed, find_question, settling
from milepost.runtime.shown import check_shown
from milepost.stores.contract import QuestionRow
from milepost.views.approvals import approval_object
from milepost.views.errors import error_object
from milepost.views.evidence import evidence_of
from milepost.views.opened import now_text, seal_key
from milepost.views.questions import TOGETHER_MAX, answer_object, evidence_parts, next_words, question_object

Form: TypeAlias = Mapping[str, Sequence[str]]
"""The fields of a form: values by name, in order."""

NOTE_LENGTH_MAX = 2000
SAID_ONCE = ("choice", "note", "ref", "result", "request")
"""Fields of which a form has one: of two that differ nobody knows which was meant."""


def gather(console: Console, link: Asked) -> dict[str, Any]:
    """Return one question, open or not, and the answers it got."""
    return question_data(console, find_question(console.store, link.needed("id")))


def question_data(console: Console, row: QuestionRow) -> dict[str, Any]:
    """Return a question as its page and the inbox show it; evidence that was altered is told, the rest shown."""
    answers = console.store.answers(row.run_id, row.question_id)
    settled = settling(row, answers)
    found = {
        **question_object(row),
        "task": _task_of(console, row.run_id),
        "evidence": None,
        "editable": None,
        "parts": [],
        "trouble": None,
        "answer": answer_object(settled[-1]) if settled else None,
        "later": [answer_object(a) for a in answers if not a.accepted],
        "approval": approval_object(row, answers) or None,
        "next": next_words(row),
        "closed": row.closed,
    }
    try:
        check_shown(console.store, row)
        found["evidence"] = evidence_of(console.store, row)
        found["editable"] = _editable(found["evidence"])
        found["parts"] = evidence_parts(found["evidence"])
    except MilepostError as error:
        found["trouble"] = error_object(error)
    return found


def _editable(evidence: Any) -> Any:
    """Return what an edit of a request begins with: its arguments; None where nothing is asked to be sent."""
    request = evidence.get("request") if isinstance(evidence, dict) else None
    return request.get("arguments", request) if isinstance(request, dict) else None


def _task_of(console: Console, run_id: str) -> str:
    row = console.store.run(run_id)
    return row.task if row is not None else ""


# ── answering ──


@dataclass(slots=True)
class Answered:
    """What became of a form: where to go on, the answers that stand, those that were refused."""

    to: str
    given: list[dict[str, Any]] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)


def answer(console: Console, by: Identity, form: Form) -> Answered:
    """Record what a visitor decided about one question, or the same about several.

    Crash: each answer as if not given, or given.
    """
    ids = form.get("question", ())
    told = Answered(link_to("/question", id=ids[0]) if len(ids) == 1 else "/inbox")
    refusal = _unclear(ids, form)
    if refusal is not None:
        told.refused.append({"question_id": ids[0] if ids else "", "error": error_object(refusal)})
        return told
    for question_id in ids:
        try:
            row = _answer_one(console, by, question_id, form)
        except MilepostError as error:
            told.refused.append({"question_id": question_id, "error": error_object(error)})
        else:
            told.given.append({"question_id": question_id, "choice": row.choice, "by": row.by, "run_id": row.run_id})
    return told


def _unclear(ids: Sequence[str], form: Form) -> AnswerRefused | None:
    """Return why nothing is recorded of a form, None when it says one thing about questions it names."""
    if not ids:
        hint = "Mark those to be answered so."
        return AnswerRefused(question_id="(none)", reason="no question was chosen", hint=hint)
    twice = next((name for name in SAID_ONCE if len(set(form.get(name, ()))) > 1), None)
    if twice is not None:
        return AnswerRefused(question_id=ids[0], reason=f"the form says more than one {twice}: nothing is recorded")
    if len(ids) > TOGETHER_MAX:
        reason = f"the form names {len(ids)} questions, more than {TOGETHER_MAX}: nothing is recorded"
        return AnswerRefused(question_id=ids[0], reason=reason)
    return None


def _answer_one(console: Console, by: Identity, question_id: str, form: Form) -> AnswerRow:
    """Record the form's answer to one of its questions. Raises: as `answer_question`. Crash: not given, or given."""
    choice, note = _one(form, "choice"), _one(form, "note")[:NOTE_LENGTH_MAX]
    given = _given(console, question_id, choice, _beside(question_id, form))
    return answer_question(
        console.store, question_id, choice, by=by, seal_key=seal_key(), at=now_text(), note=note, **given
    )


def _beside(question_id: str, form: Form) -> dict[str, str | None]:
    """Return what came with a choice. Raises: AnswerRefused when several questions would have to share it.

    A field left empty says nothing, but for the request: there it is what somebody made of what was shown.
    """
    found = {name: _one(form, name) or None for name in ("ref", "result")}
    found["request"] = _one(form, "request") if "request" in form else None
    if len(form["question"]) > 1 and any(found.values()):
        reason = "a reference, a result or a request goes with one question; answer it on its own page"
        raise AnswerRefused(question_id=question_id, reason=reason)
    return found


def _given(console: Console, question_id: str, choice: str, beside: dict[str, str | None]) -> dict[str, Any]:
    """Return what is recorded with a choice. Raises: AnswerRefused.

    The request stands in the form whatever is chosen: only the choice that takes one sends it, and any other choice
    is about the request as it was shown.
    """
    row = find_question(console.store, question_id)
    needs = next((c.needs for c in asked(row).choices if c.name == choice), ())
    if "request" not in needs:
        _refuse_changed(console, row, choice, beside["request"])
        beside = {**beside, "request": None}
    if not {"result", "request"} & {*needs}:
        return beside
    said = console.children.fitting(question_id, choice, beside)
    result, paths = believed(question_id, beside["result"], said.value)
    return {**beside, "result": result, "paths": paths}


def _refuse_changed(console: Console, row: QuestionRow, choice: str, request: str | None) -> None:
    """Refuse to drop what somebody changed: it would be sent as it was before. Raises: AnswerRefused, CorruptRecord."""
    if request is None:
        return
    shown = _editable(evidence_of(console.store, row))
    try:
        is_same = shown is not None and canonical(parse(request.encode("utf-8"))) == canonical(shown)
    except (ValueError, NotEncodable):
        is_same = False
    if not is_same:
        reason = f"the request was changed, and {choice!r} would leave the change out: press Edit to send it as changed"
        raise AnswerRefused(question_id=row.question_id, reason=f"{reason}, or open the question anew")


def _one(form: Form, name: str) -> str:
    values = form.get(name, ())
    return values[0].strip() if values else ""
