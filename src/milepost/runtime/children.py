"""Who belongs to no run: threads that were not given one, and child processes of a run.

A child finds MILEPOST_RUN, which is set while a run is active here. Called by the lease keeper and by `api`.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping

from milepost.errors import OutsideRun

RUN_VARIABLE = "MILEPOST_RUN"
"""`PID RUN_ID` of the process and a run that is active in it."""
AGENT_VARIABLE = "MILEPOST_AGENT"
"""Names who or what runs a task here; without it, it is the task itself on this machine."""
_before: str | None = None  # what this process found there: it may be a child itself


def agent_of(environ: Mapping[str, str], task: str) -> str:
    """Return who or what runs a task: nobody by that name answers what it asks."""
    return environ.get(AGENT_VARIABLE) or f"agent:{task}@{platform.node()}"


def announce(run_id: str | None) -> None:
    """Tell child processes of a run that is active here; with none, put back what was there."""
    global _before
    found = os.environ.get(RUN_VARIABLE)
    if not _is_own(found):
        _before = found
    if run_id is not None:
        os.environ[RUN_VARIABLE] = f"{os.getpid()} {run_id}"
    elif _before is not None:
        os.environ[RUN_VARIABLE] = _before
    else:
        os.environ.pop(RUN_VARIABLE, None)


def started_by_a_run() -> str | None:
    """Return the run that started this process, None when it was none."""
    found = os.environ.get(RUN_VARIABLE)
    return found.partition(" ")[2] if found and not _is_own(found) else None


def refuse_strangers(name: str, *, is_active: bool) -> None:
    """Refuse a call outside any run while one is active here or in the process that started this one.

    Raises: OutsideRun.
    """
    if is_active:
        raise OutsideRun(path=name, reason="a run is active in this process, but this thread does not belong to it")
    run_id = started_by_a_run()
    if run_id is not None:
        raise OutsideRun(path=name, reason=f"this process was started by run {run_id}, but does not belong to it")


def _is_own(found: str | None) -> bool:
    return found is not None and found.partition(" ")[0] == str(os.getpid())
