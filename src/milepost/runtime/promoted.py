"""What stands recorded about a task before it runs live: how its shadow runs compared, and its promotion.

Both are results of runs of our own tasks (`milepost.shadow`), read here and trusted like those of any run. Writes
nothing. Called by `start`, which refuses a live run without them, and by `milepost.shadow`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from milepost.errors import NotPromoted
from milepost.protocol.snapshot import Snapshot
from milepost.protocol.spec import TaskSpec
from milepost.records.canonical import parse
from milepost.records.frozen import frozen
from milepost.records.model import RunStatus
from milepost.runtime.keeping import Artifacts
from milepost.runtime.standing import all_runs
from milepost.runtime.trust import read_trusted
from milepost.stores.contract import RunRow, Store

COMPARISON, PROMOTION = "milepost-comparison", "milepost-promotion"
READ_MAX = 500
"""Newest runs of one of our tasks that are read; older ones count no more."""


@frozen
class Promotion:
    """The run that promoted a task, and the task's versions then."""

    run_id: str
    versions: Mapping[str, str]


def results(
    store: Store, kind: str, task: str, seal_key: bytes | None, *, approved: bool = False
) -> Iterator[tuple[RunRow, dict[str, Any]]]:
    """Yield the results of one of our tasks that are about `task`, newest run first; `approved`: that people allowed.

    Raises: CorruptRecord, SealKeyMissing: what cannot be trusted is not passed over.
    """
    rows = all_runs(store, task=kind, status=RunStatus.DONE)
    for _, row in zip(range(READ_MAX), rows, strict=False):
        opened = read_trusted(store, row.run_id, seal_key)
        if opened.refusal is not None:
            raise opened.refusal
        if approved and not _was_approved(opened.snapshot):
            continue
        ended = opened.snapshot.ended
        assert ended is not None
        assert ended.output is not None
        data = Artifacts(store, row.run_id, snapshot=opened.snapshot).load(ended.output, "result of the run")
        found: Any = parse(data)
        if found["task"] == task:
            yield row, found


def _was_approved(s: Snapshot) -> bool:
    """Say whether a step of the run waited for people and began because they approved."""
    return any(state.acted and state.given[-1].choice == "approve" for state in s.approvals.values())


def promotion_of(store: Store, task: str, seal_key: bytes | None) -> Promotion | None:
    """Return a task's newest promotion. Raises: as `results`."""
    for row, found in results(store, PROMOTION, task, seal_key, approved=True):
        return Promotion(row.run_id, found["versions"])
    return None


def required(task: TaskSpec, store: Store, seal_key: bytes | None) -> Promotion | None:
    """Return the promotion that lets a task run live; None when it needs none. Raises: NotPromoted."""
    if not task.shadow_first:
        return None
    promotion = promotion_of(store, task.name, seal_key)
    if promotion is None:
        raise NotPromoted(task=task.name, missing=_missing(task, store, seal_key))
    return promotion


def _missing(task: TaskSpec, store: Store, seal_key: bytes | None) -> str:
    compared = {found["run_id"] for _, found in results(store, COMPARISON, task.name, seal_key)}
    ran = sum(row.shadow and row.progress.status is RunStatus.DONE for row in all_runs(store, task=task.name))
    return (
        f"needed: {task.shadow_first} in a row of its shadow runs that agree to {task.agreement:.2%}, and a promotion; "
        f"found: {ran} done, {len(compared)} of them compared, no promotion"
    )
