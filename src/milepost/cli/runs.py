"""`milepost runs`: the runs of a store."""

from __future__ import annotations

from datetime import datetime
from itertools import islice

import click

from milepost.cli.opened import store_to_read
from milepost.cli.options import TEXT, json_option
from milepost.cli.output import emit, note, table
from milepost.records.model import RunStatus
from milepost.records.shown import cut
from milepost.runtime.standing import Standing, all_runs
from milepost.stores.contract import RunRow
from milepost.views.opened import now, stands
from milepost.views.runs import run_object
from milepost.views.words import ago

HEADERS = ("run", "task", "stands", "started", "last", "verified", "applied", "next")
NEXT_LENGTH_MAX = 80
"""Characters of what comes next that are shown."""


@click.command("runs")
@click.option("--task", type=TEXT, help="Only runs of this task.")
@click.option("--status", type=click.Choice([status.value for status in RunStatus]), help="Only runs of this status.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="At most so many, newest first.")
@json_option
def command(task: str | None, status: str | None, limit: int, as_json: bool) -> int:
    """List the runs of this store, newest first.

    \b
    Example:
      milepost runs --status failed
    """
    store = store_to_read()
    rows = all_runs(store, task=task or None, status=RunStatus(status) if status else None)
    found = [(row, stands(store, row)) for row in islice(rows, limit)]
    if as_json:
        emit({"store": store.location, "runs": [run_object(row, standing) for row, standing in found]})
        return 0
    if not found:
        note(f"No runs in {store.location}.")
        return 0
    moment = now()
    table(HEADERS, [_line(row, standing, moment) for row, standing in found])
    return 0


def _line(row: RunRow, standing: Standing, moment: datetime) -> tuple[object, ...]:
    progress = row.progress
    following = {"failed": progress.detail, "done": ""}.get(standing.word, progress.next_action)
    times = (ago(row.started_at, moment), ago(progress.at, moment))
    task = f"{row.task} (SHADOW)" if row.shadow else row.task
    counts = (progress.verified_count, progress.applied_count)
    return (row.run_id, task, standing.word, *times, *counts, cut(following, NEXT_LENGTH_MAX))
