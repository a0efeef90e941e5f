"""`milepost inbox`: the open questions, or one of them with its evidence and what each choice will do."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import click

from milepost.cli.opened import store_to_read
from milepost.cli.options import QUESTION, json_option
from milepost.cli.output import emit, note, say, table
from milepost.cli.people import note_failing
from milepost.errors import CorruptRecord, RefusedError
from milepost.records.model import Choice, QuestionKind
from milepost.records.rows import AnswerRow
from milepost.records.shown import inert
from milepost.runtime.answering import asked, find_question, settling
from milepost.runtime.opening import row_of
from milepost.runtime.shown import altered, check_shown
from milepost.runtime.standing import unanswered
from milepost.stores.contract import QuestionRow, Store
from milepost.views.approvals import approval_lines, approval_object, evidence_in_order, request_of, so_far
from milepost.views.errors import error_object
from milepost.views.evidence import evidence_lines, evidence_of
from milepost.views.opened import now
from milepost.views.questions import answer_object, question_object
from milepost.views.words import ago, clock_time

REQUEST_LENGTH_MAX = 300
"""Characters of a request that the command which edits it begins with; a longer one is left to be written."""


@click.command("inbox")
@click.argument("question_id", metavar="[QUESTION]", required=False, type=QUESTION)
@json_option
def command(question_id: str | None, as_json: bool) -> int:
    """List the open questions, oldest first; with QUESTION show its evidence and choices.

    \b
    Example:
      milepost inbox
      milepost inbox q-3f9a2c11d05b7e46
    """
    store = store_to_read()
    if question_id is not None:
        return _one(store, find_question(store, question_id), as_json)
    waiting = unanswered(store)
    refused = altered(store, waiting)
    rows = [row for row in waiting if row.question_id not in refused]
    if as_json:
        emit({"questions": [question_object(row) for row in rows], **_refused(refused)})
    else:
        _list(store, rows, refused)
    return RefusedError.exit_status if refused else 0


def _refused(refused: Mapping[str, CorruptRecord]) -> dict[str, Any]:
    told = [{"question_id": name, "error": error_object(error)} for name, error in refused.items()]
    return {"refused": told} if told else {}


def _list(store: Store, rows: Sequence[QuestionRow], refused: Mapping[str, CorruptRecord]) -> None:
    """List what is asked; of a question that was altered say so, and nothing of its words."""
    for error in refused.values():
        note(f"{error.code}: {error}")
    if not rows and not refused:
        note("No open questions.")
    if not rows:
        return
    moment = now()
    table(
        ("question", "run", "asked", "kind", "sentence"),
        [(row.question_id, row.run_id, ago(row.asked_at, moment), _kind(store, row), row.sentence) for row in rows],
    )
    note(f"`milepost inbox {rows[0].question_id}` shows the evidence and what each choice will do.")
    note_failing(store)


def _kind(store: Store, row: QuestionRow) -> str:
    """Name the kind of a question, and of several approvals how many it has."""
    given = so_far(row, store.answers(row.run_id, row.question_id)) if row.kind == QuestionKind.APPROVAL else ""
    return f"{row.kind}, {given}" if given else row.kind


def _one(store: Store, row: QuestionRow, as_json: bool) -> int:
    check_shown(store, row)
    evidence = evidence_of(store, row)
    answers = store.answers(row.run_id, row.question_id)
    settled, approval = settling(row, answers), approval_object(row, answers)
    stands = settled[-1] if settled else None
    if as_json:
        found = {**question_object(row), "evidence": evidence, "answer": answer_object(stands) if stands else None}
        emit({**found, **({"approval": approval} if approval else {})})
        return 0
    say(f"{row.question_id} · {row.kind} · run {row.run_id} (task {row_of(store, row.run_id).task})")
    say(f"asked {clock_time(row.asked_at)}" + (f", about {row.path}" if row.path else ""))
    say(f"\n{inert(row.sentence)}\n", lines=True)
    for line in evidence_lines(evidence_in_order(evidence)):
        say(line)
    for line in approval_lines(approval):
        say(line)
    _say_choices(row, request_of(evidence)) if stands is None else _say_answer(stands)
    return 0


def _say_answer(stands: AnswerRow) -> None:
    why = f": {stands.note}" if stands.note else ""
    say(f"Answered {stands.choice} by {stands.by} at {clock_time(stands.at)}{why}")


def _say_choices(row: QuestionRow, request: str | None) -> None:
    for choice in asked(row).choices:
        say(f"  {choice.name}: {choice.does}")
        say(f"      {answer_command(row.question_id, choice, request)}")
    say(f"Then: milepost resume {shlex.quote(row.run_id)}")


def answer_command(question_id: str, choice: Choice, request: str | None = None) -> str:
    """Return the command that gives an answer, with what the choice takes; an edit begins with what was asked about."""
    begins = shlex.quote(inert(request)) if request is not None and len(request) <= REQUEST_LENGTH_MAX else "JSON"
    needs = {"ref": " [--ref PROVIDERS_ID]", "result": " --result JSON", "request": f" --request {begins}"}
    return f"milepost answer {question_id} {choice.name}" + "".join(needs[name] for name in choice.needs)
