"""Comparisons that are kept: a task of our own, so that what was compared with what stands in a sealed journal.

`over_time` adds them up. A comparison is of one shadow run, at one head of its journal; of several the newest counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from milepost.decorators import step, task
from milepost.errors import MisuseError
from milepost.records.canonical import canonical, digest
from milepost.records.model import RunStatus
from milepost.runtime.promoted import COMPARISON, promotion_of, results
from milepost.runtime.standing import all_runs
from milepost.shadow.comparing import Stands
from milepost.shadow.report import Report, agreement_of
from milepost.stores.contract import RunRow, Store
from milepost.views.opened import seal_key

_NAME_MAX = 150
"""Characters of a run id that go into the id of the run that keeps its comparison."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How one shadow run compared: with what, matched how, and how many writes of either side stand how."""

    run_id: str
    task: str
    head: str  # seal over the run's journal when it was compared
    versions: dict[str, str]
    started_at: str
    effect: str
    on: list[str]
    against: str
    against_digest: str
    agreed: int
    different: int
    missed: int
    extra: int

    @property
    def counts(self) -> dict[str, int]:
        return {str(s): getattr(self, s) for s in (Stands.AGREED, Stands.DIFFERENT, Stands.MISSED, Stands.EXTRA)}

    @property
    def agreement(self) -> float | None:
        return agreement_of(self.counts)


def counts_are_counts(found: Comparison) -> bool:
    """Say whether nothing is counted below zero."""
    return min(found.counts.values()) >= 0


@step(verify=counts_are_counts, why="review", next="Compare further shadow runs, then `milepost promote`.")
def keep(found: Comparison) -> Comparison:
    """Keep a comparison as it was made."""
    return found


@task(name=COMPARISON)
def comparison(found: Comparison) -> Comparison:
    """Keep how a shadow run compared with what was done."""
    return keep(found)


@dataclass(frozen=True, slots=True)
class Kept:
    """A comparison and the run that keeps it; `stands` is False when the shadow run changed since."""

    comparison_id: str
    at: str
    found: Comparison
    stands: bool


def keep_report(store: Store, report: Report) -> str:
    """Keep a report as evidence; return the id of the run that does. The same report is kept once.

    Raises: MisuseError when it compares nothing or the run is not done. Crash: kept, or the same command keeps it.
    """
    if report.against is None:
        raise MisuseError(reason="nothing is compared: name what with --against")
    if report.status != RunStatus.DONE:
        raise MisuseError(
            reason=f"run {report.run_id} is {report.status}: only a run that is done is compared for good"
        )
    found = Comparison(
        run_id=report.run_id,
        task=report.task,
        head=report.head,
        versions=report.versions,
        started_at=report.started_at,
        effect=report.effect,
        on=list(report.on),
        against=report.against.name,
        against_digest=report.against.digest,
        **report.counts,
    )
    as_data = {f.name: getattr(found, f.name) for f in fields(found)}
    name = f"comparison-{report.run_id[:_NAME_MAX]}-{digest(canonical(as_data))[:8]}"
    comparison.options(store=store).run(name, found)
    return name


def kept(store: Store, task: str) -> list[Kept]:
    """Return the newest comparison of each shadow run of a task, newest shadow run first. Raises: CorruptRecord."""
    newest: dict[str, Kept] = {}
    for row, data in results(store, COMPARISON, task, seal_key()):
        found = Comparison(**data)
        if found.run_id not in newest:
            newest[found.run_id] = Kept(row.run_id, row.started_at, found, _stands(store, found))
    return sorted(newest.values(), key=lambda one: one.found.started_at, reverse=True)


def _stands(store: Store, found: Comparison) -> bool:
    """Say whether the shadow run is as it was compared; one that was pruned is not there to have changed."""
    row = store.run(found.run_id)
    return row is None or (row.shadow and row.head.seal.hex() == found.head)


def agreeing(found: list[Kept], versions: Mapping[str, str], agreement: float) -> list[Kept]:
    """Return the newest comparisons in a row that agree, of shadow runs of these versions."""
    row: list[Kept] = []
    for one in (k for k in found if k.stands and k.found.versions == dict(versions)):
        if (one.found.agreement or 0.0) < agreement:
            break
        row.append(one)
    return row


def over_time(store: Store, task: str) -> dict[str, Any]:
    """Return the shadow runs of a task, newest first, how each compared, and all of them added up. Plain data."""
    by_run = {one.found.run_id: one for one in kept(store, task)}
    rows = [row for row in all_runs(store, task=task) if row.shadow]
    sums = {str(s): sum(one.found.counts[str(s)] for one in by_run.values()) for s in Stands if s is not Stands.ALONE}
    promotion = promotion_of(store, task, seal_key())
    return {
        "task": task,
        "runs": [_run(row, by_run.get(row.run_id)) for row in rows],
        "compared_count": len(by_run),
        "counts": sums,
        "agreement": agreement_of(sums),
        "promotion": {"run_id": promotion.run_id, "versions": dict(promotion.versions)} if promotion else None,
    }


def _run(row: RunRow, one: Kept | None) -> dict[str, Any]:
    return {
        "run_id": row.run_id,
        "started_at": row.started_at,
        "status": str(row.progress.status),
        "comparison_id": one.comparison_id if one else None,
        "stands": one.stands if one else None,
        "against": one.found.against if one else None,
        "counts": one.found.counts if one else None,
        "agreement": one.found.agreement if one else None,
        "versions": one.found.versions if one else None,
    }
