"""Who may answer: whoever `approvers=` names, and never the agent that asks. Judged for every door in one place.

An agent is known by the name its run records, by the process that works on the run, and by every process started from
it. What it could do under a person's own account once its process is gone, no program on that machine can tell.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from milepost.errors import AnswerRefused
from milepost.records.identity import Identity
from milepost.records.model import QuestionAsked
from milepost.runtime.children import started_by_a_run
from milepost.runtime.leases import active_runs, is_on_this_machine
from milepost.stores.contract import RunRow

ANCESTORS_MAX = 1000
"""Processes looked at on the way to the first one."""


def role_of(question: QuestionAsked, by: Identity) -> str:
    """Return the entry of `approvers=` that lets somebody answer, "" where anybody may. Raises: AnswerRefused."""
    approvers = [str(name) for name in question.about.get("approvers", ())]
    role = by.role_among(approvers)
    if approvers and role is None:
        groups = f" (groups: {', '.join(by.groups)})" if by.groups else ""
        reason = f"{', '.join(approvers)} may answer, {by.name}{groups} may not"
        raise AnswerRefused(question_id=question.question_id, reason=reason)
    return role or ""


def refuse_the_agent(question: QuestionAsked, run: RunRow, by: Identity) -> None:
    """Refuse an answer of whoever runs the task, or from inside of a run. Raises: AnswerRefused."""
    reason = ""
    if by.name in question.about.get("agents", ()):
        reason = f"{by.name} runs the task, and nobody allows what they ask for themselves"
    elif active_runs():
        reason = "a run is active in this process: whoever answers must be outside of it"
    elif (asking := started_by_a_run()) is not None:
        reason = f"this process was started by run {asking}: whoever answers must be outside of it"
    elif _is_below_its_holder(run):
        reason = f"this process was started by the one that works on run {run.run_id}"
    if reason:
        raise AnswerRefused(question_id=question.question_id, reason=reason)


def _is_below_its_holder(run: RunRow) -> bool:
    """Say whether the process that works on a run started this one: its environment may have been emptied."""
    held = run.held
    return held is not None and is_on_this_machine(held.holder) and held.holder.pid in _ancestors()


def _ancestors() -> Iterator[int]:
    """Yield this process's parent, its parent, and so on, as far as the kernel tells."""
    pid = os.getpid()
    for _ in range(ANCESTORS_MAX):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        except OSError:
            return
        pid = int(stat.rpartition(")")[2].split()[1])
        if pid == 0:
            return
        yield pid
