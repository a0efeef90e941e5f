"""The inbox: open questions, oldest first, with evidence and choices; a .map's approvals together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from milepost.console.pages.asked import Asked
from milepost.console.pages.question import question_data
from milepost.console.wiring import Console
from milepost.errors import MilepostError
from milepost.notify.delivery import still_failing
from milepost.notify.outbox import Outbox
from milepost.runtime.standing import unanswered
from milepost.stores.contract import QuestionRow
from milepost.views.errors import error_object
from milepost.views.evidence import evidence_of
from milepost.views.questions import together

PAGE = 20
"""Questions on one page."""


def gather(console: Console, asked: Asked) -> dict[str, Any]:
    """Return one page of open questions, oldest first."""
    rows = unanswered(console.store, asked.text("run") or None)
    first = asked.number("from", 0)
    shown = rows[first : first + PAGE]
    return {
        "run_id": asked.text("run") or None,
        "count": len(rows),
        "from": first,
        "next_from": first + PAGE if first + PAGE < len(rows) else None,
        "previous_from": max(first - PAGE, 0) if first else None,
        "questions": [question_data(console, row) for row in shown],
        "not_told": _not_told(console),
        "batches": _batches(console, rows, {row.question_id for row in shown}),
    }


def _batches(console: Console, rows: Sequence[QuestionRow], shown: set[str]) -> list[dict[str, Any]]:
    """Return what may be answered together and begins or goes on here, each item with what exactly it asks about."""
    found = [batch for batch in together(rows) if batch["count"] > 1]
    here = [batch for batch in found if shown & {question["question_id"] for question in batch["questions"]}]
    row_of = {row.question_id: row for row in rows}
    for question in (question for batch in here for question in batch["questions"]):
        try:
            question["evidence"] = evidence_of(console.store, row_of[question["question_id"]])
        except MilepostError as error:  # its own page tells it whole
            question["trouble"] = error_object(error)
    return here


def _not_told(console: Console) -> list[dict[str, Any]]:
    """Return the notifications that have not reached anybody, with why; the questions stand all the same."""
    try:
        failing = still_failing(Outbox.beside(console.door.location))
    except MilepostError as error:
        return [{"question_id": None, "channel": "notifications", "attempts": 0, "error": str(error)}]
    return [
        {"question_id": n.question_id, "channel": n.channel, "attempts": n.attempts, "error": n.last_error}
        for n in failing
    ]
