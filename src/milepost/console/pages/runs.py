"""The list of runs: a page of rows from the store, filtered and searched there. Reads no journal."""

from __future__ import annotations

from typing import Any

from milepost.console.pages.asked import Asked, bad_value
from milepost.console.wiring import Console
from milepost.records.model import RunStatus
from milepost.views.runs import run_rows

PAGE = 50
"""Runs on one page."""


def gather(console: Console, asked: Asked) -> dict[str, Any]:
    """Return one page of runs, newest start first."""
    task, text = asked.text("task") or None, asked.text("q") or None
    status = _status(asked.text("status"))
    before = asked.text("before") or None
    rows = console.store.runs(task=task, status=status, search=text, limit=PAGE + 1, before=before)
    return {
        "task": task,
        "status": status,
        "q": text,
        "statuses": [status.value for status in RunStatus],
        "runs": run_rows(console.store, rows[:PAGE]),
        "is_first": before is None,
        "next_before": rows[PAGE - 1].run_id if len(rows) > PAGE else None,
    }


def _status(text: str) -> RunStatus | None:
    if not text:
        return None
    try:
        return RunStatus(text)
    except ValueError:
        names = ", ".join(RunStatus)
        raise bad_value("status", text[:40], f"expected one of {names}") from None
