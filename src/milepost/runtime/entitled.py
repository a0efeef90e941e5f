"""Who may answer: whoever `approvers=` names, and never the agent that asks. Judged for every door in one place.

An agent is known by the name its run records, by every process that has worked on a run, and by every process below
such a one. What it could do under a person's own account once its process is gone, no program on that machine can tell.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from milepost.errors import AnswerRefused
from milepost.records.identity import Identity, is_same_person
from milepost.records.model import QuestionAsked, RunStarted, RunStatus
from milepost.records.written import UNREADABLE, decode_record
from milepost.runtime import children
from milepost.runtime.leases import active_runs, is_on_this_machine
from milepost.stores.contract import Store

RUNS_MAX = 1000
"""Newest runs of each status that are looked at for one whose process is above this one."""
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


def refuse_the_agent(store: Store, run_id: str, question: QuestionAsked, by: Identity) -> None:
    """Refuse an answer of whoever runs the task, or from inside of a run. Raises: AnswerRefused."""
    reason = ""
    if any(is_same_person(by.name, agent) for agent in _agents(store, question, run_id)):
        reason = f"{by.name} runs the task, and nobody allows what they ask for themselves"
    elif active_runs():
        reason = "a run is active in this process: whoever answers must be outside of it"
    elif (asking := children.started_by_a_run()) is not None:
        reason = f"this process was started by run {asking}: whoever answers must be outside of it"
    elif (above := _run_above(store)) is not None:
        reason = f"this process was started by run {above}: whoever answers must be outside of it"
    elif not children.plays_both:
        reason = _marked()
    if reason:
        raise AnswerRefused(question_id=question.question_id, reason=reason)


def _marked() -> str:
    """Say why this is an agent's process although no run is under way in it, "" when it is none."""
    if children.is_marked():
        return "this process has worked on a run, and stays the agent's until it exits: answer from another one"
    pid = next((pid for pid in (os.getpid(), *_ancestors()) if children.shows_a_mark(pid)), None)
    return "" if pid is None else f"this process was started below process {pid}, which is an agent's: answer outside"


def _agents(store: Store, question: QuestionAsked, run_id: str) -> Sequence[str]:
    """Return who or what ran a run until it asked. An approval says so itself; else it is whoever began the run."""
    if "agents" in question.about:
        return [str(name) for name in question.about["agents"]]
    try:
        (first,) = store.records(run_id, chain="", limit=1)
        started = decode_record(first.kind, first.body)
    except UNREADABLE:
        return ()  # such a run is refused when it is resumed, whoever answered
    return (started.agent,) if isinstance(started, RunStarted) and started.agent else ()


def _run_above(store: Store) -> str | None:
    """Return a run of this store whose process started this one: the environment may have been emptied on the way."""
    above = set(_ancestors())
    for status in (RunStatus.RUNNING, RunStatus.ASKING, RunStatus.WAITING):
        for row in store.runs(status=status, limit=RUNS_MAX):
            if row.held is not None and row.held.holder.pid in above and is_on_this_machine(row.held.holder):
                return row.run_id
    return None


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
