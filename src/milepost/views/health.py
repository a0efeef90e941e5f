"""What runs went through: deaths, resumes, failures, waits, how long checkpoints took, what was not repeated. Pure.

Facts are taken from one journal each and summed; who keeps them decides how many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal, InvalidOperation
from statistics import quantiles
from typing import Any

from milepost.protocol.keys import name_in
from milepost.records.model import (
    AnswerEntered,
    Outcome,
    OutcomeRecorded,
    OutputRecorded,
    QuestionAsked,
    Record,
    RunEnded,
    RunResumed,
    StepFailedNoted,
    StepVerified,
    WaitRecorded,
)
from milepost.records.naming import body_of
from milepost.records.times import parse_time
from milepost.runtime.opening import Opened

FAILURES_MAX = 20
"""Failures that came more than once, most frequent first, that are named."""


@dataclass(slots=True)
class RunFacts:
    """What one run went through. Times in seconds."""

    run_id: str
    task: str
    day: str  # UTC date it was started
    status: str
    resumes: int = 0
    deaths: int = 0
    failures: Counter[tuple[str, str]] = field(default_factory=Counter)  # step, class of the error
    waits: int = 0
    waited_s: float = 0.0
    questions: int = 0
    asked_s: float = 0.0
    latencies_s: list[float] = field(default_factory=list)  # from the end of a body to its checkpoint
    saved_s: float = 0.0
    saved_cost: Decimal = Decimal(0)
    doubts: int = 0
    trouble: str = ""


def facts_of(opened: Opened) -> RunFacts:
    """Return what a run went through, as far as its journal can be trusted."""
    row = opened.row
    told = _Fold(RunFacts(row.run_id, row.task, row.started_at[:10], row.progress.status.value))
    for _, record in opened.records:
        told.hear(record)
    told.facts.trouble = str(opened.refusal) if opened.refusal is not None else ""
    return told.facts


class _Fold:
    """Counts, record by record. `done` is what is finished and would be lost without checkpoints, by body."""

    def __init__(self, facts: RunFacts) -> None:
        self.facts = facts
        self.is_working = True
        self.ended_at: dict[str, datetime] = {}
        self.asked_at: dict[str, datetime] = {}
        self.done: dict[str, tuple[float, Decimal]] = {}

    def hear(self, record: Record) -> None:
        handler = _HEARS.get(type(record))
        if handler is not None:
            handler(self, record)

    def finish(self, path: str, seconds: float, spent: Any) -> None:
        """Add what a call took to the bodies around it; what was inside it is part of it."""
        inner = self.done.pop(path, (0.0, Decimal(0)))
        more = (max(seconds - inner[0], 0.0), max(_cost(spent) - inner[1], Decimal(0)))
        kept = (inner[0] + more[0], inner[1] + more[1])
        self.done[path] = kept
        while path:
            path = body_of(path)
            held = self.done.get(path, (0.0, Decimal(0)))
            self.done[path] = (held[0] + more[0], held[1] + more[1])


def _cost(spent: Any) -> Decimal:
    try:
        return Decimal(str(spent.get("cost", "0"))) if spent else Decimal(0)
    except (InvalidOperation, AttributeError):
        return Decimal(0)


def _resumed(f: _Fold, r: RunResumed) -> None:
    f.facts.resumes += 1
    f.ended_at.clear()  # what a checkpoint waited for a resume, or a review before it, is not what keeping it took
    f.facts.deaths += f.is_working
    f.is_working = True
    seconds, cost = f.done.get("", (0.0, Decimal(0)))
    f.facts.saved_s += seconds
    f.facts.saved_cost += cost


def _ended(f: _Fold, r: RunEnded) -> None:
    f.is_working = False
    if r.until:
        _wait(f, r.at, r.until)


def _wait(f: _Fold, at: str, until: str) -> None:
    f.facts.waits += 1
    f.facts.waited_s += max((parse_time(until) - parse_time(at)).total_seconds(), 0.0)


def _output(f: _Fold, r: OutputRecorded) -> None:
    f.ended_at[r.path] = parse_time(r.at)


def _verified(f: _Fold, r: StepVerified) -> None:
    ended = f.ended_at.pop(r.path, None)
    if ended is not None:
        f.facts.latencies_s.append(max((parse_time(r.at) - ended).total_seconds(), 0.0))
    f.finish(r.path, r.duration_s, r.spent)


def _failed(f: _Fold, r: StepFailedNoted) -> None:
    f.facts.failures[name_in(r.path), r.error.type] += 1


def _outcome(f: _Fold, r: OutcomeRecorded) -> None:
    if r.outcome == Outcome.APPLIED:
        f.finish(r.path, r.duration_s, r.spent)
        return
    f.facts.doubts += r.outcome == Outcome.UNKNOWN
    if r.error is not None:
        f.facts.failures[name_in(r.path), r.error.type] += 1


def _asked(f: _Fold, r: QuestionAsked) -> None:
    f.facts.questions += 1
    f.asked_at[r.question_id] = parse_time(r.at)


def _answered(f: _Fold, r: AnswerEntered) -> None:
    asked = f.asked_at.pop(r.question_id, None)
    if asked is not None:
        f.facts.asked_s += max((parse_time(r.answered_at) - asked).total_seconds(), 0.0)


_HEARS: dict[type[Record], Callable[[_Fold, Any], None]] = {
    RunResumed: _resumed,
    RunEnded: _ended,
    OutputRecorded: _output,
    StepVerified: _verified,
    StepFailedNoted: _failed,
    OutcomeRecorded: _outcome,
    QuestionAsked: _asked,
    AnswerEntered: _answered,
    WaitRecorded: lambda f, r: _wait(f, r.at, r.until),
}


def health(runs: Sequence[RunFacts]) -> dict[str, Any]:
    """Sum what runs went through, in all and by the day they were started."""
    by_day: dict[str, list[RunFacts]] = {}
    for facts in runs:
        by_day.setdefault(facts.day, []).append(facts)
    failures: Counter[tuple[str, str]] = sum((facts.failures for facts in runs), Counter())
    return {
        "runs": len(runs),
        "statuses": dict(sorted(Counter(facts.status for facts in runs).items())),
        **_summed(runs),
        "latency_s": _latency(latency for facts in runs for latency in facts.latencies_s),
        "failures": [
            {"step": step, "error": error, "count": count}
            for (step, error), count in failures.most_common(FAILURES_MAX)
        ],
        "days": [{"day": day, "runs": len(facts), **_summed(facts)} for day, facts in sorted(by_day.items())],
        "most_deaths": [
            {"run_id": facts.run_id, "deaths": facts.deaths, "resumes": facts.resumes, "saved_s": facts.saved_s}
            for facts in sorted(runs, key=lambda facts: -facts.deaths)[:10]
            if facts.deaths
        ],
        "troubles": [{"run_id": facts.run_id, "trouble": facts.trouble} for facts in runs if facts.trouble],
    }


def _summed(runs: Sequence[RunFacts]) -> dict[str, Any]:
    return {
        "deaths": sum(facts.deaths for facts in runs),
        "resumes": sum(facts.resumes for facts in runs),
        "failed": sum(facts.failures.total() for facts in runs),
        "doubts": sum(facts.doubts for facts in runs),
        "waits": sum(facts.waits for facts in runs),
        "waited_s": sum(facts.waited_s for facts in runs),
        "questions": sum(facts.questions for facts in runs),
        "asked_s": sum(facts.asked_s for facts in runs),
        "saved_s": sum(facts.saved_s for facts in runs),
        "saved_cost": str(sum((facts.saved_cost for facts in runs), Decimal(0))),
    }


def _latency(latencies: Iterable[float]) -> dict[str, float] | None:
    found = sorted(latencies)
    if not found:
        return None
    cuts = quantiles(found, n=100, method="inclusive") if len(found) > 1 else [found[0]] * 99
    return {"count": len(found), "median": cuts[49], "p95": cuts[94], "longest": found[-1]}
