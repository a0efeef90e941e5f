"""The journal of a run, a page of records at a time; only records that can be trusted are shown."""

from __future__ import annotations

from typing import Any

from milepost.console.pages.asked import Asked
from milepost.console.wiring import Console
from milepost.views.errors import error_object
from milepost.views.journal import stored_object
from milepost.views.summaries import summary

PAGE = 200
"""Records on one page."""


def gather(console: Console, asked: Asked) -> dict[str, Any]:
    """Return a page of records in order, from after a number."""
    opened = console.read(asked.needed("id"))
    after = asked.number("after", 0)
    rest = [(line, record) for line, record in opened.records if line.seq > after]
    shown = rest[:PAGE]
    return {
        "run_id": opened.row.run_id,
        "count": len(opened.records),
        "after": after,
        "next_after": shown[-1][0].seq if len(rest) > PAGE else None,
        "previous_after": max(after - PAGE, 0) if after else None,
        "refusal": error_object(opened.refusal) if opened.refusal is not None else None,
        "records": [
            {**stored_object(line), "at": record.at, "path": getattr(record, "path", None), "says": summary(record)}
            for line, record in shown
        ],
    }
