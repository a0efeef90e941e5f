"""Says what a drill found: a table that is read in ten seconds, then each failure with what replays it. Plain text."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator

from milepost.drill.outcome import KINDS, Outcome, Report, SideEffect
from milepost.protocol.keys import name_in

COLUMNS = ("tried", "survived", "asked", "refused", "failed", "repeated", "skipped")
FAILURES_MAX = 10
"""Failures told in full."""
CHANGES_MAX = 6
"""Differences shown of each."""


def lines(report: Report) -> list[str]:
    """Return the whole report."""
    found = [_head(report), "", *_table(report), ""]
    for number, outcome in enumerate(report.failed):
        if number == FAILURES_MAX:
            found.append(f"… and {len(report.failed) - number} more failures; --json lists them all")
            break
        found += [*_failure(outcome, report.replay), ""]
    found += [_undeclared(effect) for effect in report.side_effects]
    found += [f"NOT STEADY  {said}; compute it in a step, whose output a resume gets back" for said in report.unsteady]
    found += _notes(report)
    found.append(verdict(report))
    return found


def verdict(report: Report) -> str:
    """Say the result in one sentence."""
    if report.held:
        total = report.total()
        if not total["tried"]:
            return "Nothing was tried."
        return f"Everything held: {_counted(total['tried'], 'interruption')}, nothing repeated, nothing skipped."
    found = ((report.failed, "failed trial"), (report.side_effects, "undeclared side effect"))
    said = [_counted(len(those), what) for those, what in (*found, (report.unsteady, "unsteady call")) if those]
    return f"Not everything held: {', '.join(said)}."


def _head(report: Report) -> str:
    size = ((report.step_count, "step"), (report.effect_count, "effect"), (report.point_count, "crash point"))
    parts = ", ".join(_counted(count, what) for count, what in size)
    return f"drill of {report.task}: {parts}; {_counted(len(report.outcomes), 'trial')} in {report.seconds:.0f} s"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _table(report: Report) -> Iterator[str]:
    rows = report.rows()
    wide = max([len(about) for about, _ in rows] + [len("all")])
    yield "  ".join([" " * wide, *(column.upper().rjust(8) for column in COLUMNS)])
    for about, counted in rows:
        yield _row(about.ljust(wide), counted)
    if len(rows) > 1:
        yield _row("all".ljust(wide), report.total())


def _row(about: str, counted: Counter[str]) -> str:
    return "  ".join([about, *(_shown(column, counted[column]).rjust(8) for column in COLUMNS)])


def _shown(column: str, count: int) -> str:
    """A zero where something would be wrong is a result; elsewhere it is nothing."""
    return str(count) if count or column in ("failed", "repeated", "skipped") else "·"


def _failure(outcome: Outcome, replay: str) -> Iterator[str]:
    yield f"FAILED  {KINDS[outcome.kind]}: {outcome.point}"
    if outcome.record:
        yield f"  interrupted after {outcome.record}"
    if outcome.said:
        yield f"  {outcome.said}"
    yield from (f"  {change}" for change in outcome.differences[:CHANGES_MAX])
    if len(outcome.differences) > CHANGES_MAX:
        yield f"  … and {len(outcome.differences) - CHANGES_MAX} more differences"
    if replay:
        yield f"  replay: {replay} {shlex.quote(outcome.point)}"


def _undeclared(effect: SideEffect) -> str:
    who = effect.who if effect.who.startswith(("the plan", "a thread", "verifier")) else f"step {effect.who}"
    did = {"socket": "connects to", "process": "starts", "file": "writes"}[effect.kind]
    name = "plan" if effect.who == "the plan" else name_in(effect.who)
    advice = f"make it an effect, or declare it harmless with --allow {shlex.quote(f'{name}:{effect.kind}')}"
    return f"UNDECLARED  {who} {did} {effect.what} at {effect.line}; {advice}"


def _notes(report: Report) -> Iterator[str]:
    if report.not_compared:
        shown = ", ".join(report.not_compared[:5]) + (" …" if len(report.not_compared) > 5 else "")
        yield f"Not compared, because two undisturbed runs differ there: {shown}"
    untried = [outcome for outcome in report.outcomes if outcome.verdict == "untried"]
    for outcome in untried[:5]:
        yield f"Not tried: {outcome.point}: {outcome.said or outcome.record}"
    if len(untried) > 5:
        yield f"Not tried: {len(untried) - 5} more; --json lists them"
    yield from (f"Note: {hint}" for hint in report.hints)
