"""`milepost answer`: what a person decided about a question, or about several at once."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import click

from milepost.cli.answered import checked_apart, checked_request, checked_result
from milepost.cli.opened import the_store, whoami
from milepost.cli.options import QUESTION, RUN, TEXT, json_option
from milepost.cli.output import emit, note
from milepost.errors import MilepostError, RefusedError, UnavailableError
from milepost.records.rows import AnswerRow
from milepost.runtime.answering import answer_question, asked, check_answer, choice_of, find_question, settling
from milepost.runtime.opening import row_of
from milepost.runtime.standing import unanswered
from milepost.stores.contract import QuestionRow, Store
from milepost.views.approvals import so_far
from milepost.views.errors import error_object
from milepost.views.opened import now_text, seal_key
from milepost.views.words import counted

WITH_TYPES = frozenset({"edit", "applied", "give"})
"""Choices with which something is given that has a type only the task knows."""


@dataclass(frozen=True, slots=True)
class Said:
    """What comes with a choice."""

    choice: str
    note: str = ""
    ref: str | None = None
    result: str | None = None
    request: str | None = None
    paths: tuple[str, ...] = ()  # of files, among what the request says

    @property
    def is_of_one(self) -> bool:
        """Say whether it can be about one question only."""
        return (self.ref, self.result, self.request) != (None, None, None)


@dataclass(slots=True)
class Told:
    """What became of the answers to several questions."""

    given: list[AnswerRow] = field(default_factory=list)
    refused: list[tuple[str, MilepostError]] = field(default_factory=list)


@click.command("answer")
@click.argument("words", metavar="[QUESTION]... CHOICE", nargs=-1, required=True, type=QUESTION)
@click.option("--run", "run_id", type=RUN, help="Answer the open questions of this run instead of named ones.")
@click.option(
    "--path", "pattern", type=TEXT, default="*", help="With --run: those about these calls; * stands for anything."
)
@click.option("--ref", type=TEXT, help="The provider's own reference id of what was applied.")
@click.option("--result", type=TEXT, metavar="JSON", help="What the effect would have returned.")
@click.option(
    "--request",
    metavar="JSON",
    help="With edit: the arguments to send instead, all of them, with files as they are now.",
)
@click.option("--check", "only_check", is_flag=True, help="Only check what is given with a choice; record nothing.")
@click.option("--note", "why", type=TEXT, default="", help="Why; kept in the audit.")
@json_option
def command(
    words: tuple[str, ...],
    run_id: str | None,
    pattern: str,
    ref: str | None,
    result: str | None,
    request: str | None,
    only_check: bool,
    why: str,
    as_json: bool,
) -> int:
    """Answer a question, or several alike. The first answer stands; a later one is refused and kept in the audit.

    `milepost inbox QUESTION` shows the choices, what each will do, and what it takes. What does not fit is refused
    and not recorded. Who answers is the account this runs under. Refused are the agent's name, a process of a run and
    whatever is seen to be below it, or may be and is hidden by a container; one that was left behind under your account
    is taken for you. The run acts on the answer when it is resumed, and as many have approved as must.

    \b
    Example:
      milepost answer q-3f9a2c11d05b7e46 keep --note "the new file only has a fixed typo"
      milepost answer q-77c0a1e5b2d94f08 edit --request '{"invoice": "INV-7", "amount": 9}'
      milepost answer --run october --path 'post*' approve
    """
    *named, choice = words
    if run_id is None and not named:
        raise click.UsageError("Name questions, or a --run.")
    store = the_store()
    said = Said(choice, why, ref, result, request)
    if only_check:
        return _check(store, named, said, as_json=as_json)
    if run_id is None and len(named) == 1:
        return _one(store, find_question(store, named[0]), said, as_json=as_json)
    if said.is_of_one:
        raise click.UsageError("--ref, --result and --request go with one QUESTION.")
    chosen = _chosen(store, named, run_id, pattern, choice)
    if run_id is not None and not chosen and not as_json:
        return _none_offers(store, run_id, choice)
    return _several(store, chosen, said, as_json=as_json)


def _chosen(store: Store, named: Sequence[str], run_id: str | None, pattern: str, choice: str) -> list[QuestionRow]:
    """Return the named questions, or those of a run about these calls that offer the choice.

    Those nobody has answered. Who declines hears of the others, too, and so does who finds none left: what comes too
    late is refused, with the name of whoever decided, and kept; of what is long settled nobody hears while a run asks.
    """
    if run_id is None:
        return [find_question(store, question_id) for question_id in named]
    if named:
        raise click.UsageError("--run goes without QUESTION; --path says which of its questions.")
    row_of(store, run_id)  # a run nobody knows is told as one
    like = re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)

    def fits(row: QuestionRow) -> bool:
        return bool(like.fullmatch(row.path)) and any(offered.name == choice for offered in asked(row).choices)

    unsettled = unanswered(store, run_id)
    still = list(filter(fits, unsettled))
    if still and choice != "decline":
        return still
    ids = {row.question_id for row in still}
    there = filter(fits, store.questions(run_id, closed=not unsettled))
    return [*still, *(row for row in there if row.question_id not in ids)]


def _give(store: Store, row: QuestionRow, said: Said) -> AnswerRow:
    """Record one answer, checked against the task's own types where it can be loaded. Crash: as `answer_question`."""
    if said.choice in WITH_TYPES:
        result, paths = checked_apart(store, row, said.choice, {"result": said.result, "request": said.request})
        said = replace(said, result=result, paths=paths)
    return answer_question(
        store,
        row.question_id,
        said.choice,
        by=whoami(),
        seal_key=seal_key(),
        at=now_text(),
        note=said.note,
        ref=said.ref,
        result=said.result,
        request=said.request,
        paths=said.paths,
    )


def _fitting(store: Store, row: QuestionRow, said: Said) -> Said:
    """Return what was said, as it is to be recorded. Raises: AnswerRefused when it does not fit the effect."""
    choice_of(row, said.choice)
    if said.choice == "edit":
        return replace(said, paths=tuple(checked_request(store, row, said.request)))
    if said.choice not in ("applied", "give"):
        return said
    return replace(said, result=checked_result(store, row, said.result))


def _check(store: Store, named: Sequence[str], said: Said, *, as_json: bool) -> int:
    """Check what goes with one answer, and nothing else: whether it is open and who may answer is judged when given."""
    if len(named) != 1:
        raise click.UsageError("--check goes with one QUESTION.")
    row = find_question(store, named[0])
    fitting = _fitting(store, row, said)
    check_answer(row, fitting.choice, ref=fitting.ref, result=fitting.result, request=fitting.request)
    if as_json:
        given = {"result": fitting.result, "request": fitting.request, "paths": [*fitting.paths]}
        emit({"question_id": named[0], "choice": said.choice, **given})
    else:
        note("What is given fits as far as it can be told; nothing is recorded.")
    return 0


def _one(store: Store, row: QuestionRow, said: Said, *, as_json: bool) -> int:
    """Answer one question and say what comes next. Crash: as `answer_question`."""
    stands = _give(store, row, said)
    is_settled = bool(settling(row, store.answers(row.run_id, row.question_id)))
    left = unanswered(store, row.run_id)
    if as_json:
        emit({**_object(stands), "settled": is_settled, "open": len(left)})
        return 0
    answered = f"{row.question_id} is answered {said.choice}"
    if not is_settled:
        note(f"{answered}, {stands.place} of {asked(row).about['approvals']}: somebody else must approve, too.")
    elif left:
        note(f"{answered}; run {row.run_id} still asks {left[0].question_id}.")
    else:
        note(f"{answered}; {_resumes(store, row.run_id, said.choice)}.")
    return 0


def _object(answer: AnswerRow) -> dict[str, Any]:
    return {"question_id": answer.question_id, "run_id": answer.run_id, "choice": answer.choice, "by": answer.by}


def _several(store: Store, rows: Sequence[QuestionRow], said: Said, *, as_json: bool) -> int:
    """Answer several questions alike; one that is refused keeps none of the others from being answered.

    A store that cannot be written takes none: what it says to the first one is said once.
    Crash: each answer as if not given, or given.
    """
    told = Told()
    for row in rows:
        try:
            told.given.append(_give(store, row, said))
        except MilepostError as error:
            told.refused.append((row.question_id, error))
            if isinstance(error, UnavailableError):
                break
    if as_json:
        refused = [{"question_id": name, "error": error_object(error)} for name, error in told.refused]
        emit({"given": [_object(answer) for answer in told.given], "refused": refused})
    else:
        _say(store, told, said.choice)
    if any(isinstance(error, UnavailableError) for _, error in told.refused):
        return UnavailableError.exit_status
    return 0 if told.given and not told.refused else RefusedError.exit_status


def _none_offers(store: Store, run_id: str, choice: str) -> int:
    """Say what a run asks instead, and what may be chosen there."""
    note(f"No question there offers {choice}: nothing is recorded.")
    left = unanswered(store, run_id)
    for row in left:
        about = f" about {row.path}" if row.path else ""
        choices = ", ".join(offered.name for offered in asked(row).choices)
        note(f"{row.question_id} ({row.kind}{about}) offers {choices}.")
    note(f"  → `milepost inbox {left[0].question_id}` shows it." if left else f"  → run {run_id} asks nothing now.")
    return RefusedError.exit_status


def _say(store: Store, told: Told, choice: str) -> None:
    for _, error in told.refused:
        note(f"{error.code}: {error}")
    for hint in dict.fromkeys(error.hint for _, error in told.refused):
        note(f"  → {hint}")
    if not told.given:
        return
    stands = [f"{counted(len(told.given), 'question')} answered {choice}"]
    stands += [_stands(store, run_id, choice) for run_id in sorted({answer.run_id for answer in told.given})]
    note("; ".join(stands) + ".")


def _resumes(store: Store, run_id: str, choice: str) -> str:
    """Say what a resume does now: where somebody answered stop or asked the run to end, nothing goes on."""
    ends = choice == "stop" or row_of(store, run_id).cancel is not None
    return f"`milepost resume {shlex.quote(run_id)}` {'ends it' if ends else 'goes on'}"


def _stands(store: Store, run_id: str, choice: str) -> str:
    """Say whether a run can go on now, or what it still asks: another approval of the same, too."""
    left = unanswered(store, run_id)
    if not left:
        return _resumes(store, run_id, choice)
    halves = sum(bool(so_far(row, store.answers(run_id, row.question_id))) for row in left)
    more = f", {counted(halves, 'question')} of them for another approval" if halves else ""
    return f"run {run_id} still asks {counted(len(left), 'question')}{more}"
