"""Who may answer: whoever `approvers=` names, and never the agent that asks. Judged for every door in one place.

An agent is known by the name its run records, by every process that has worked on a run, and by every process below
such a one; where it cannot be told what is above, nobody answers. What an agent could do under a person's own account
once its process is gone, no program on that machine can tell.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from milepost.errors import AnswerRefused
from milepost.records.identity import Identity, is_same_person
from milepost.records.model import QuestionAsked, RunStarted, RunStatus
from milepost.records.written import UNREADABLE, decode_record
from milepost.runtime import children
from milepost.runtime.ancestors import ancestors, began_before, in_own
from milepost.runtime.leases import active_runs, is_on_this_machine
from milepost.runtime.opening import row_of
from milepost.stores.contract import Held, Store

RUNS_MAX = 1000
"""Newest runs of each status that are looked at for one whose process is above this one."""
OUTSIDE = (
    "Answer from a shell of the machine itself, or in the console that runs there. From a container: in the one where "
    "the runs are; if it was begun anew since, resume the run there first."
)
"""What to do where it cannot be told whether a run is above."""


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
    reason, hint = "", AnswerRefused.hint
    if any(is_same_person(by.name, agent) for agent in _agents(store, question, run_id)):
        reason = f"{by.name} runs the task, and nobody allows what they ask for themselves"
    elif active_runs():
        reason = "a run is active in this process: whoever answers must be outside of it"
    elif (asking := children.started_by_a_run()) is not None:
        reason = f"this process was started by run {asking}: whoever answers must be outside of it"
    elif (above := ancestors()) is None:
        reason, hint = "what is above this process cannot be told: /proc hides it, or is another's", OUTSIDE
    elif (asking := _run_above(store, above)) is not None:
        reason = f"this process was started by run {asking}: whoever answers must be outside of it"
    elif not children.plays_both:
        reason = _marked(above)
        if not reason and in_own("pid"):
            reason, hint = _hidden(store, run_id), OUTSIDE
    if reason:
        raise AnswerRefused(question_id=question.question_id, reason=reason, hint=hint)


def _marked(above: Sequence[int]) -> str:
    """Say why this is an agent's process although no run is under way in it, "" when it is none."""
    if children.is_marked():
        return "this process has worked on a run, and stays the agent's until it exits: answer from another one"
    pid = next((pid for pid in (os.getpid(), *above) if children.shows_a_mark(pid)), None)
    return "" if pid is None else f"this process was started below process {pid}, which is an agent's: answer outside"


def _hidden(store: Store, run_id: str) -> str:
    """Say why a run may be above this container, where none is seen; "" when it cannot.

    Whoever works on a run here is seen from here. A container that is older than the run's last process, with no
    other run's process outside of it, was not begun by one of them to answer.
    """
    if not began_before(1, row_of(store, run_id).taken_at):
        return f"this container (PID namespace) began after run {run_id} was taken last: its run may have begun it"
    for held in _held(store):
        here = began_before(held.holder.pid, held.holder.since)
        if not here and is_on_this_machine(held.holder, renamed=True):
            return f"run {held.run_id} is held outside of this container (PID namespace), and may have begun it"
    return ""


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


def _run_above(store: Store, above: Sequence[int]) -> str | None:
    """Return a run of this store whose process started this one: the environment may have been emptied on the way."""
    renamed = in_own("uts")
    for held in _held(store):
        if held.holder.pid in above and is_on_this_machine(held.holder, renamed=renamed):
            return held.run_id
    return None


def _held(store: Store) -> Iterator[Held]:
    """Yield the leases that nobody gave back, of the newest runs that may be under way."""
    for status in (RunStatus.RUNNING, RunStatus.ASKING, RunStatus.WAITING):
        yield from (row.held for row in store.runs(status=status, limit=RUNS_MAX) if row.held is not None)
