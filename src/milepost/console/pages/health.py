"""Health: what went wrong and what it cost, over the newest runs. Each journal is read once and its facts kept."""

from __future__ import annotations

from itertools import islice
from typing import Any

from milepost.console.pages.asked import Asked
from milepost.console.wiring import Console
from milepost.runtime.standing import all_runs
from milepost.stores.contract import RunRow
from milepost.views.health import RunFacts, facts_of, health
from milepost.views.opened import stands

RUNS_MAX = 200
"""Newest runs that are told about."""
RECORDS_MAX = 200_000
"""Records they may have together; the newest run is always told about."""
KEPT_MAX = 2000
_kept: dict[tuple[str, str, bytes], RunFacts] = {}
"""Facts by store, run and sealed head: a journal that did not grow is not read again."""


def gather(console: Console, asked: Asked) -> dict[str, Any]:
    """Return the facts of the newest runs, summed and by day."""
    task = asked.text("task") or None
    rows = _newest(console, task)
    found = health([_facts(console, row) for row in rows])
    died = [row.run_id for row in rows if stands(console.store, row).word == "died"]
    return {**found, "task": task, "runs_max": RUNS_MAX, "died_now": died}


def _newest(console: Console, task: str | None) -> list[RunRow]:
    """Return the newest runs, as many as can be read in a moment."""
    found: list[RunRow] = []
    records = 0
    for row in islice(all_runs(console.store, task=task), RUNS_MAX):
        records += row.head.seq
        if found and records > RECORDS_MAX:
            break
        found.append(row)
    return found


def _facts(console: Console, row: RunRow) -> RunFacts:
    key = (console.store.location, row.run_id, row.head.seal)
    kept = _kept.get(key)
    if kept is None:
        kept = facts_of(console.read(row.run_id))
        while len(_kept) >= KEPT_MAX:
            _kept.pop(next(iter(_kept)), None)
        _kept[key] = kept
    return kept
