"""Comparisons that are kept: a task of our own, so that what was compared with what stands in a sealed journal.

`over_time` adds them up. A comparison is of one shadow run, at one head of its journal; of several the newest counts.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import takewhile
from typing import Any

from milepost.decorators import step, task
from milepost.errors import MisuseError, NotDecodable
from milepost.protocol.role import Role, is_of, versions_in
from milepost.records.canonical import canonical, digest
from milepost.records.model import RunStatus
from milepost.runtime.promoted import COMPARISON, promotion_of, results
from milepost.runtime.standing import all_runs
from milepost.shadow.comparing import one_sided
from milepost.shadow.others import Other
from milepost.shadow.report import COMPARED, Report, agreement_of
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
    calls: Role  # what the run called: steps and effects with their versions
    effect: str
    left_out: list[str]  # effects of either side that were not compared
    uncompared: list[str]  # fields of the writes that would be made which nothing was compared with
    on: list[str]
    against: str
    against_digest: str
    against_run: str  # id of the live run it is; "" for a file
    agreed: int
    different: int
    missed: int
    extra: int

    @property
    def counts(self) -> dict[str, int]:
        return {str(s): getattr(self, s) for s in COMPARED}

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
    """A comparison and the run that keeps it; `void` says why it does not count, "" when it does."""

    comparison_id: str
    at: str
    found: Comparison
    void: str

    @property
    def stands(self) -> bool:
        return not self.void


def keep_report(store: Store, report: Report) -> str:
    """Keep a report as evidence; return the id of the run that does. The same report is kept once.

    Raises: MisuseError when it compares nothing, compares with what was not done, or the run is not done.
    Crash: kept, or the same command keeps it.
    """
    other = _done_side(report)
    found = Comparison(
        run_id=report.run_id,
        task=report.task,
        head=report.head,
        versions=report.versions,
        started_at=report.started_at,
        calls=report.calls,
        effect=report.effect,
        left_out=list(report.left_out),
        uncompared=one_sided(report.lines)[0],
        on=list(report.on),
        against=other.name,
        against_digest=other.digest,
        against_run=other.run_id,
        **report.counts,
    )
    as_data = {f.name: getattr(found, f.name) for f in fields(found)}
    name = f"comparison-{report.run_id[:_NAME_MAX]}-{digest(canonical(as_data))[:8]}"
    comparison.options(store=store).run(name, found)
    return name


def _done_side(report: Report) -> Other:
    """Return what was done, which a report is kept against. Raises: MisuseError when it is not to be kept."""
    other = report.against
    if other is None:
        raise MisuseError(reason="nothing is compared: name what with --against")
    if other.is_shadow:
        reason = f"{other.name} is a shadow run, it did nothing: --keep takes what is compared with a file of"
        raise MisuseError(reason=f"{reason} what people did, or with a live run")
    if report.status != RunStatus.DONE:
        reason = f"run {report.run_id} is {report.status}: only a run that is done is compared for good"
        raise MisuseError(reason=reason)
    return other


def kept(store: Store, task: str) -> list[Kept]:
    """Return the newest comparison of each shadow run of a task that counts, else the newest; newest run first.

    Raises: CorruptRecord.
    """
    newest: dict[str, Kept] = {}
    for row, data in results(store, COMPARISON, task, seal_key()):
        try:
            found = comparison.spec.output.decode(canonical(data))
        except NotDecodable:
            continue  # of another release, which said less of what it compared
        one, known = Kept(row.run_id, row.started_at, found, _void(store, found)), newest.get(found.run_id)
        if known is None or (known.void and not one.void):
            newest[found.run_id] = one
    return sorted(newest.values(), key=lambda one: one.found.started_at, reverse=True)


def _void(store: Store, found: Comparison) -> str:
    """Say why a comparison does not count, "" when it does: it shows nothing without the run it is of, as it was."""
    row = store.run(found.run_id)
    if row is None:
        return "its shadow run is not in this store"
    if not row.shadow or row.task != found.task or row.progress.status is not RunStatus.DONE:
        return "it is of no shadow run of this task that is done"
    if row.head.seal.hex() != found.head:
        return "changed since it was compared"
    other = store.run(found.against_run) if found.against_run else None
    if other is not None and other.shadow:
        return "compared with a shadow run"
    return f"not compared: {', '.join(found.left_out)}" if found.left_out else ""


def of_role(found: list[Kept], role: Role) -> list[Kept]:
    """Return the comparisons that count of shadow runs of this role: newest first, as all that they called is known."""
    row: list[Kept] = []
    for one in found:
        seen = seen_in(row, role)
        if one.stands and one.found.versions == versions_in(role) and is_of(one.found.calls, role, seen):
            row.append(one)
    return row


def seen_in(row: list[Kept], role: Role) -> Role:
    """Return what these shadow runs called beyond what the role names: what is known only at run time."""
    return {name: facts for one in reversed(row) for name, facts in one.found.calls.items() if name not in role}


def agreeing(of_this_role: list[Kept], agreement: float) -> list[Kept]:
    """Return the newest comparisons in a row that agree."""
    return list(takewhile(lambda one: (one.found.agreement or 0.0) >= agreement, of_this_role))


def over_time(store: Store, task: str) -> dict[str, Any]:
    """Return the shadow runs of a task, newest first, how each compared, and all of them added up. Plain data."""
    by_run = {one.found.run_id: one for one in kept(store, task)}
    rows = [row for row in all_runs(store, task=task) if row.shadow]
    whole = [one for one in by_run.values() if one.stands]
    sums = {str(s): sum(one.found.counts[str(s)] for one in whole) for s in COMPARED}
    promotion = promotion_of(store, task, seal_key())
    return {
        "task": task,
        "runs": [_run(row, by_run.get(row.run_id)) for row in rows],
        "compared_count": len(whole),
        "counts": sums,
        "agreement": agreement_of(sums),
        "promotion": {"run_id": promotion.run_id, "role": promotion.role} if promotion else None,
    }


def _run(row: RunRow, one: Kept | None) -> dict[str, Any]:
    return {
        "run_id": row.run_id,
        "started_at": row.started_at,
        "status": str(row.progress.status),
        "comparison_id": one.comparison_id if one else None,
        "stands": one.stands if one else None,
        "void": one.void if one else "",
        "against": one.found.against if one else None,
        "counts": one.found.counts if one else None,
        "agreement": one.found.agreement if one else None,
        "versions": one.found.versions if one else None,
    }
