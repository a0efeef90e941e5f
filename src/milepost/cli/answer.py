"""`milepost answer`: what a person decided about a question."""

from __future__ import annotations

import shlex

import click

from milepost.cli.answered import checked_result
from milepost.cli.opened import the_store, whoami
from milepost.cli.options import QUESTION, json_option
from milepost.cli.output import emit, note
from milepost.runtime.answering import answer_question, find_question
from milepost.runtime.standing import unanswered
from milepost.views.opened import now_text, seal_key


@click.command("answer")
@click.argument("question_id", metavar="QUESTION", type=QUESTION)
@click.argument("choice", metavar="CHOICE")
@click.option("--ref", help="The provider's own reference id of what was applied.")
@click.option("--result", metavar="JSON", help="What the effect would have returned.")
@click.option("--note", "why", default="", help="Why; kept in the audit.")
@json_option
def command(question_id: str, choice: str, ref: str | None, result: str | None, why: str, as_json: bool) -> int:
    """Answer a question. The first answer stands; a later one is refused and kept in the audit.

    `milepost inbox QUESTION` shows the choices, what each will do, and what it takes. What does not fit is refused
    and not recorded. Who answers is the account this runs under. The run acts on the answer when it is resumed.

    \b
    Example:
      milepost answer q-3f9a2c11d0 keep --note "the new file only has a fixed typo"
    """
    store = the_store()
    row = find_question(store, question_id)
    if choice in ("applied", "give"):
        result = checked_result(store, row, result)
    stands = answer_question(
        store, question_id, choice, by=whoami(), seal_key=seal_key(), at=now_text(), note=why, ref=ref, result=result
    )
    left = unanswered(store, stands.run_id)
    if as_json:
        emit(
            {"question_id": question_id, "run_id": stands.run_id, "choice": choice, "by": stands.by, "open": len(left)}
        )
    elif left:
        note(f"{question_id} is answered {choice}; run {stands.run_id} still asks {left[0].question_id}.")
    else:
        note(f"{question_id} is answered {choice}; `milepost resume {shlex.quote(stands.run_id)}` goes on.")
    return 0
