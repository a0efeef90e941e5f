"""Promotion: a task's role turns from shadow to live as a recorded, approved act: a task of our own.

Its one step waits for a person who approves the exact case: which versions, which shadow runs, how they agreed. Its
result is what `runtime.promoted` looks for. Called by `milepost promote`.
"""

from __future__ import annotations

from dataclasses import dataclass

from milepost.decorators import step, task
from milepost.errors import NotPromoted
from milepost.protocol.spec import TaskSpec
from milepost.records.canonical import Json, canonical, digest
from milepost.runtime.promoted import PROMOTION
from milepost.shadow.evidence import Kept, agreeing, kept
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


@dataclass(frozen=True, slots=True)
class Case:
    """Why a task may run live: its versions, what it asks for, and the shadow runs that show it, newest first."""

    task: str
    versions: dict[str, str]
    shadow_first: int
    agreement: float
    runs: list[Cited]


def is_made(case: Case) -> bool:
    """Say whether the case has the runs that the task asks for, and each agrees as it asks."""
    return len(case.runs) >= case.shadow_first and all(r.agreed >= case.agreement * r.of > 0 for r in case.runs)


def said(case: Case) -> str:
    """Say the case in one sentence."""
    agreed, of = sum(run.agreed for run in case.runs), sum(run.of for run in case.runs)
    return (
        f"Task {case.task} turns live: of {of} writes in its newest shadow runs ({len(case.runs)}), "
        f"{agreed} agreed with what was done."
    )


@step(approve="before", summary=said, verify=is_made, why="review", next="Start the task without --shadow.")
def promote(case: Case) -> Case:
    """Let the task run live."""
    return case


@task(name=PROMOTION, on_version_change="record")
def promotion(case: Case) -> Case:
    """Turn a task from shadow to live, once a person has approved the case."""
    return promote(case)


def case_for(spec: TaskSpec, store: Store) -> Case:
    """Return the case of a task as its evidence stands now. Raises: NotPromoted, which says what is missing."""
    needed = max(spec.shadow_first, 1)
    versions = dict(spec.versions())
    found = kept(store, spec.name)
    row = agreeing(found, versions, spec.agreement)
    if len(row) < needed:
        raise NotPromoted(task=spec.name, missing=_missing(spec, needed, found, row, versions))
    return Case(spec.name, versions, needed, spec.agreement, [_cited(one) for one in row[:needed]])


def _cited(one: Kept) -> Cited:
    found = one.found
    total = sum(found.counts.values())
    return Cited(found.run_id, one.comparison_id, found.head, found.against, found.agreed, total)


def _missing(spec: TaskSpec, needed: int, found: list[Kept], row: list[Kept], versions: dict[str, str]) -> str:
    other = sum(one.found.versions != versions for one in found)
    changed = sum(not one.stands for one in found)
    said = [f"{len(row)} of {needed} shadow runs in a row agree to {spec.agreement:.2%}"]
    said += [f"{other} were of other versions than now"] if other else []
    said += [f"{changed} changed since they were compared"] if changed else []
    said += [f"{len(found) - len(row) - other - changed} agree less or are older than one that does"] if found else []
    return "; ".join(said)


def promotion_id(case: Case) -> str:
    """Return the id of the run that promotes by this case: the same case is decided once."""
    parts: list[Json] = [case.task, str(case.agreement), *(f"{name} {v}" for name, v in sorted(case.versions.items()))]
    parts += [run.comparison_id for run in case.runs]
    return f"promotion-{case.task[:_NAME_MAX]}-{digest(canonical(parts))[:8]}"
