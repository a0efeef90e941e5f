"""The inbox: open questions, oldest first, with evidence and choices; a .map's approvals together."""

from __future__ import annotations

from typing import Any

from milepost.console.pages.asked import Asked
from milepost.console.pages.question import question_data
from milepost.console.wiring import Console
from milepost.runtime.standing import unanswered
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
        "batches": [batch for batch in together(rows) if batch["count"] > 1],
    }
