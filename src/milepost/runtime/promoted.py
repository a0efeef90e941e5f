"""What stands recorded about a task before it runs live: how its shadow runs compared, and its promotion.

Both are results of runs of our own tasks (`milepost.shadow`), read here and trusted like those of any run. Writes
nothing. Called by `start`, which refuses a live run without them, and by `milepost.shadow`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from milepost.errors import NotPromoted
from milepost.protocol.role import Promoted
from milepost.protocol.snapshot import Snapshot
from milepost.protocol.spec import TaskSpec
from milepost.protocol.versions import VersionCheck
from milepost.records.canonical import parse
from milepost.records.model import RunStatus
from milepost.runtime.active import ActiveRun
from milepost.runtime.keeping import Artifacts
from milepost.runtime.role import declared_role
from milepost.runtime.standing import all_runs
from milepost.runtime.trust import read_trusted
from milepost.stores.contract import RunRow, Store

COMPARISON, PROMOTION = "milepost-comparison", "milepost-promotion"
_WRITTEN = {COMPARISON: ("found", "keep", False), PROMOTION: ("case", "promote", True)}
"""What the runs of our tasks consist of: their one input, their one step, whether people approve it."""
TURNS_LIVE = "Task {task} turns live"
"""What people are asked to approve says so."""
READ_MAX = 500
"""Newest runs of one of our tasks that are read; older ones count no more."""


def results(store: Store, kind: str, task: str, seal_key: bytes | None) -> Iterator[tuple[RunRow, dict[str, Any]]]:
    """Yield the results of one of our tasks that are about `task`, newest run first.

    A run that is not what our task writes is none, whatever it is called.
    Raises: CorruptRecord, SealKeyMissing: what cannot be trusted is not passed over.
    """
    rows = all_runs(store, task=kind, status=RunStatus.DONE)
    for _, row in zip(range(READ_MAX), rows, strict=False):
        opened = read_trusted(store, row.run_id, seal_key)
        if opened.refusal is not None:
            raise opened.refusal
        found = _as_written(kind, opened.snapshot, Artifacts(store, row.run_id, snapshot=opened.snapshot))
        if found is not None and found.get("task") == task:
            yield row, found


def _as_written(kind: str, s: Snapshot, artifacts: Artifacts) -> dict[str, Any] | None:
    """Return what a run of our task recorded: its one input, which its one step gave back. None: another's run."""
    parameter, name, is_approved = _WRITTEN[kind]
    step = s.steps.get(name)
    if s.started is None or s.ended is None or s.ended.output is None or [*s.steps] != [name] or s.effects:
        return None
    output = s.ended.output
    if step is None or step.verified is None or step.verified.output.digest != output.digest:
        return None
    if output.media_type != "application/json":
        return None
    found: Any = parse(artifacts.load(output, "result of the run"))
    inputs: Any = parse(artifacts.load(s.started.inputs, "inputs of the run"))
    if not isinstance(found, dict) or inputs != {parameter: found}:
        return None
    return found if not is_approved or _was_approved(s, name, inputs, artifacts) else None


def _was_approved(s: Snapshot, step: str, inputs: Any, artifacts: Artifacts) -> bool:
    """Say whether people were asked about exactly this and the step began because they approved."""
    state = s.approvals.get(step)
    if state is None or not state.acted or state.given[-1].choice != "approve" or state.question.evidence is None:
        return False
    shown: Any = parse(artifacts.load(state.question.evidence, f"evidence of {state.question.question_id}"))
    says = TURNS_LIVE.format(task=inputs["case"].get("task"))
    return shown.get("request") == {"arguments": inputs} and says in state.question.sentence


def promotion_of(store: Store, task: str, seal_key: bytes | None) -> Promoted | None:
    """Return a task's newest promotion that binds a role. Raises: as `results`."""
    for row, case in results(store, PROMOTION, task, seal_key):
        if "role" in case and "seen" in case:
            return Promoted(row.run_id, case["role"], case["seen"])
    return None


def required(task: TaskSpec, store: Store, seal_key: bytes | None) -> Promoted | None:
    """Return the promotion that lets a task start live as it is now; None when it needs none. Raises: NotPromoted."""
    if not task.shadow_first:
        return None
    promotion = promotion_of(store, task.name, seal_key)
    if promotion is None:
        raise NotPromoted(task=task.name, missing=_missing(task, store, seal_key))
    unlike = promotion.unlike(declared_role(task))
    if unlike is not None:
        raise NotPromoted(task=task.name, missing=f"it is not what {promotion.run_id} promoted: {unlike}")
    return promotion


def _missing(task: TaskSpec, store: Store, seal_key: bytes | None) -> str:
    compared = {found.get("run_id") for _, found in results(store, COMPARISON, task.name, seal_key)}
    ran = sum(row.shadow and row.progress.status is RunStatus.DONE for row in all_runs(store, task=task.name))
    return (
        f"needed: {task.shadow_first} in a row of its shadow runs that agree to {task.agreement:.2%}, and a promotion; "
        f"found: {ran} done, {len(compared)} of them compared, no promotion"
    )


def going_on(run: ActiveRun) -> tuple[Promoted | None, VersionCheck | None]:
    """Return the promotion under which a live run goes on, and in what the task's role is another than promoted.

    A run that began when its task needed none goes on without. Raises: as `results`.
    """
    started = run.snapshot.started
    began_under = started.promotion if started is not None else None
    promotion = promotion_of(run.journal.store, run.task.name, run.seal_key)
    if promotion is None:
        gone = VersionCheck("", {"promotion": str(began_under)}, {"promotion": "none"}, of_role=True)
        return None, gone if began_under is not None else None
    unlike = promotion.unlike(declared_role(run.task))
    check = VersionCheck("", unlike.old, unlike.new, of_role=True) if unlike is not None else None
    return promotion, check
