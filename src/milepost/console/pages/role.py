"""The map: the role definition of a task as picture and table. A child process loads the task, as a run recorded it.

Only targets that a trusted journal names are loaded, never one from a link.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from milepost.console.pages.asked import Asked
from milepost.console.wiring import Console
from milepost.errors import RunUnstarted, UnknownTask
from milepost.runtime.opening import Opened
from milepost.runtime.standing import all_runs
from milepost.views.whereabouts import whereabouts

RUNS_MAX = 1000
"""Newest runs whose tasks are offered."""


def gather(console: Console, asked: Asked) -> dict[str, Any]:
    """Return the role definition of a task, or the tasks there are."""
    tasks = _tasks(console)
    run_id = asked.text("run") or tasks.get(asked.text("task") or next(iter(tasks), ""), "")
    empty: dict[str, Any] = {"tasks": tasks, "run_id": run_id, "task": None, "role": None, "trouble": None}
    if not run_id:
        return empty
    opened = console.read(run_id)
    if asked.text("again") == "1":
        console.children.forget()
    return {**empty, "task": opened.row.task, **_role(console, opened)}


def _tasks(console: Console) -> dict[str, str]:
    """Return the tasks of the newest runs, each with its newest run."""
    found: dict[str, str] = {}
    for row in islice(all_runs(console.store), RUNS_MAX):
        if row.head.seq:
            found.setdefault(row.task, row.run_id)
    return found


def _role(console: Console, opened: Opened) -> dict[str, Any]:
    if opened.refusal is not None:
        raise opened.refusal
    started = opened.snapshot.started
    if started is None:
        raise RunUnstarted(run_id=opened.row.run_id, location=console.store.location)
    try:
        where = whereabouts(started, console.store.location, opened.row.run_id)
    except UnknownTask as error:
        return {"trouble": str(error)}
    said = console.children.role(where.target, where.folder)
    if said.trouble:
        return {"trouble": said.trouble}
    return {"role": said.value}
