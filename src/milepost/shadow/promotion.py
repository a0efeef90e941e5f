"""Promotion: a task's role turns from shadow to live as a recorded, approved act: a task of our own.

Its one step waits for a person who approves the exact case: which versions, which shadow runs, how they agreed. Its
result is what `runtime.promoted` looks for. Called by `milepost promote`.
"""

from __future__ import annotations

from dataclasses import dataclass

from milepost.decorators import step, task
from milepost.errors import NotPromoted
from milepost.protocol.questions import listed
from milepost.protocol.role import Role
from milepost.protocol.spec import TaskSpec
from milepost.records.canonical import Json, canonical, digest
from milepost.runtime.context import here_or_refused
from milepost.runtime.promoted import PROMOTION, TURNS_LIVE
from milepost.runtime.role import declared_role
from milepost.shadow.evidence import Kept, agreeing, kept, of_role, seen_in
from milepost.stores.contract import Store

_NAME_MAX = 150


@dataclass(frozen=True, slots=True)
class Cited:
    """One shadow run that speaks for a task: where its comparison is kept, the seal over its journal, how it agreed."""

    run_id: str
    comparison_id: str
    head: str
    against: str
    agreed: int
    of: int
    uncompared: list[str]  # fields that nothing was compared with


@dataclass(frozen=True, slots=True)
class Case:
    """Why a task may run live: its role, what it asks for, and the shadow runs that show it, newest first.

    `seen` is what these shadow runs called beyond the steps and effects that the role names.
    """

    task: str
    role: Role
    seen: Role
    shadow_first: int
    agreement: float
    runs: list[Cited]


def is_made(case: Case) -> bool:
    """Say whether the case has the runs that the task asks for, and each agrees as it asks."""
    return len(case.runs) >= case.shadow_first and all(r.agreed >= case.agreement * r.of > 0 for r in case.runs)


def said(case: Case) -> str:
    """Say the case in one sentence."""
    agreed, of = sum(run.agreed for run in case.runs), sum(run.of for run in case.runs)
    uncompared = sorted({name for run in case.runs for name in run.uncompared})
    return (
        f"{TURNS_LIVE.format(task=case.task)}: of {of} writes in its newest shadow runs ({len(case.runs)}), "
        f"{agreed} agreed with what was done{f'; not compared: {listed(uncompared)}' if uncompared else ''}."
    )


@step(approve="before", summary=said, verify=is_made, why="review", next="Start the task without --shadow.")
def promote(case: Case) -> Case:
    """Let the task run live."""
    return case


@task(name=PROMOTION, on_version_change="record")
def promotion(case: Case) -> Case:
    """Turn a task from shadow to live, once a person has approved the case, and if it still is what was asked about.

    Raises: NotPromoted.
    """
    _check_holds(case)
    return promote(case)


def _check_holds(case: Case) -> None:
    """Refuse a case whose evidence has changed since it was made: what is approved rests on it."""
    found = kept(here_or_refused("a promotion").run.journal.store, case.task)
    of_this = of_role(found, case.role)
    row = agreeing(of_this, case.agreement)
    holding = {one.comparison_id for one in row}
    gone = {run.run_id for run in case.runs if run.comparison_id not in holding}
    if gone:
        changed = [f"{one.found.run_id}: {one.void}" for one in found if one.void and one.found.run_id in gone]
        changed += [f"{one.found.run_id} agrees to {one.found.agreement or 0.0:.2%}" for one in of_this[len(row) :][:1]]
        said = "; ".join(changed) or f"other comparisons are kept of {listed(sorted(gone))}"
        raise NotPromoted(
            task=case.task, missing=f"since it was asked, what its promotion rests on has changed: {said}"
        )


def case_for(spec: TaskSpec, store: Store) -> Case:
    """Return the case of a task as its evidence stands now. Raises: NotPromoted, which says what is missing."""
    needed = max(spec.shadow_first, 1)
    role = declared_role(spec)
    found = kept(store, spec.name)
    of_this = of_role(found, role)
    row = agreeing(of_this, spec.agreement)
    if len(row) < needed:
        raise NotPromoted(task=spec.name, missing=_missing(spec, needed, found, row, len(of_this)))
    cited = row[:needed]
    return Case(
        task=spec.name,
        role=role,
        seen=seen_in(cited, role),
        shadow_first=needed,
        agreement=spec.agreement,
        runs=[_cited(one) for one in cited],
    )


def _cited(one: Kept) -> Cited:
    found = one.found
    total = sum(found.counts.values())
    return Cited(found.run_id, one.comparison_id, found.head, found.against, found.agreed, total, found.uncompared)


def _missing(spec: TaskSpec, needed: int, found: list[Kept], row: list[Kept], of_this: int) -> str:
    void = [one for one in found if one.void]
    other = len(found) - len(void) - of_this
    said = [f"{len(row)} of {needed} shadow runs in a row agree to {spec.agreement:.2%}"]
    said += [f"{other} were of other versions than now"] if other else []
    said += [f"{len(void)} do not count ({void[0].found.run_id}: {void[0].void})"] if void else []
    said += [f"{of_this - len(row)} agree less or are older than one that does"] if of_this > len(row) else []
    return "; ".join(said)


def promotion_id(case: Case) -> str:
    """Return the id of the run that promotes by this case: the same case is decided once."""
    roles: list[Json] = [{name: {**facts} for name, facts in role.items()} for role in (case.role, case.seen)]
    parts: list[Json] = [case.task, str(case.agreement), *roles, *(run.comparison_id for run in case.runs)]
    return f"promotion-{case.task[:_NAME_MAX]}-{digest(canonical(parts))[:8]}"
