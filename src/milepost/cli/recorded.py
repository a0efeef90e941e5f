"""What a run recorded about itself: the task it was started with, and the result of one that is done."""

from __future__ import annotations

import os
import shlex

from milepost.cli.load import AnyTask, load_task
from milepost.cli.output import note, say_result
from milepost.errors import RunUnstarted, UnknownTask
from milepost.records.model import RunStarted
from milepost.runtime.keeping import Artifacts
from milepost.runtime.opening import Opened
from milepost.stores.contract import Store
from milepost.views.checkpoint import result_data
from milepost.views.opened import read_trusted
from milepost.views.whereabouts import whereabouts


def recorded_task(store: Store, opened: Opened, *, named: str | None = None) -> AnyTask:
    """Return the task of a run that can be trusted; `named` is where a person says it is now.

    Raises: what keeps it from being trusted or found.
    """
    started = opened.snapshot.started
    if opened.refusal is not None:
        raise opened.refusal
    if started is None:
        raise RunUnstarted(run_id=opened.row.run_id, location=store.location)
    return started_task(started, store, opened.row.run_id, named=named)


def started_task(started: RunStarted, store: Store, run_id: str, *, named: str | None = None) -> AnyTask:
    """Go to the folder a run was started in, or where that is now, say so, import its task. Raises: UnknownTask."""
    where = whereabouts(started, store.location, run_id, named=named)
    for text in where.said:
        note(text)
    os.chdir(where.folder)
    try:
        return load_task(where.target)
    except UnknownTask as error:
        if error.hint != UnknownTask.hint:
            raise
        hint = f"{error.hint} If it was renamed: `milepost resume {shlex.quote(run_id)} --task FILE.py:FUNCTION`, where"
        hint += f' FUNCTION is declared as @task(name="{started.task}").'
        raise UnknownTask(**error.facts, hint=hint) from error.__cause__


def tell_result(store: Store, run_id: str, *, as_json: bool) -> int:
    """Print the recorded result of a run that is done; needs none of its code. Raises: what makes it untrusted."""
    opened = read_trusted(store, run_id)
    ended = opened.snapshot.ended
    assert ended is not None
    assert ended.output is not None
    data = Artifacts(store, run_id, snapshot=opened.snapshot).load(ended.output, "result of the run")
    result = result_data(data, ended.output.media_type)
    if not as_json:
        note(f"run {run_id} is done already; this is its recorded result.")
    say_result(result, {"run_id": run_id, "task": opened.row.task}, as_json=as_json)
    return 0
