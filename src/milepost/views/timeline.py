"""When what happened in a run: bars for steps and effects, waits, deaths and resumes, in seconds from its start. Pure.

Calls of one name share a row; those that ran at once are stacked in lanes. Drawn by the console.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from milepost.protocol.keys import names_in
from milepost.records.model import (
    AnswerEntered,
    CancelEntered,
    EffectRefused,
    EffectShadowed,
    IntentRecorded,
    Outcome,
    OutcomeRecorded,
    QuestionAsked,
    Record,
    RunEnded,
    RunResumed,
    RunStarted,
    RunStatus,
    StartReturned,
    StepFailedNoted,
    StepStarted,
    StepVerified,
    WaitRecorded,
)
from milepost.records.times import parse_time
from milepost.runtime.opening import Opened
from milepost.views.data import as_data

LANES_MAX = 10
"""Calls at once that a row shows one above the other; more are counted."""
ROWS_MAX = 60
"""Rows of a timeline; the first ones are shown."""


@dataclass(slots=True)
class Bar:
    """One attempt, wait or doubt: from when to when, and how it ended."""

    path: str
    start: float
    end: float
    state: str  # verified, applied, shadowed, failed, rejected, returned, lost, running, doubt, wait, asking, work
    about: str = ""
    lane: int = 0


@dataclass(frozen=True, slots=True)
class Mark:
    """One moment of the run as a whole."""

    at: float
    what: str  # started, resumed, died, asked, answered, cancelled, or how a journey ended
    about: str = ""


@dataclass(slots=True)
class Row:
    """All calls of one name inside one body, whichever item of a .map they belong to."""

    name: str
    depth: int
    kind: str  # run, step, effect; call: only asked about yet
    bars: list[Bar] = field(default_factory=list)
    lanes: int = 1
    count: int = 0
    beyond: int = 0  # bars for which there was no lane


@dataclass(slots=True)
class Timeline:
    """A run as a picture's data. `now` is its right edge."""

    started_at: str = ""
    now: float = 0.0
    rows: list[Row] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    rows_left_out: int = 0


def timeline_object(told: Timeline) -> dict[str, Any]:
    """Return a timeline as data."""
    rows = [{**as_data(row), "bars": [as_data(bar) for bar in row.bars]} for row in told.rows]
    return {**as_data(told), "rows": rows, "marks": [as_data(mark) for mark in told.marks]}


def timeline(opened: Opened, now: datetime, *, is_dead: bool = False) -> Timeline:
    """Return when everything in a run happened, as far as its journal can be trusted.

    `is_dead` says that who holds the run is known not to live any more.
    """
    folded = _Fold()
    for _, record in opened.records:
        folded.hear(record)
    return folded.finished(now, is_held=opened.row.held is not None and not is_dead, started_at=opened.row.started_at)


class _Fold:
    """Turns records, in order, into bars."""

    def __init__(self) -> None:
        self.began: datetime | None = None
        self.at = self.journey_at = 0.0
        self.is_working = False
        self.under_way: dict[str, Bar] = {}
        self.reviewed: dict[str, float] = {}  # when a person was asked about the output of a step under way
        self.asked: dict[str, Bar] = {}
        self.rows: dict[tuple[str, ...], Row] = {}
        self.calls: set[str] = set()
        self.run = Row("run", 0, "run")
        self.marks: list[Mark] = []

    def hear(self, record: Record) -> None:
        moment = parse_time(record.at)
        if self.began is None:
            self.began = moment
        before, self.at = self.at, max(self.at, (moment - self.began).total_seconds())
        if isinstance(record, RunResumed) and self.is_working:
            self._died(before)
        handler = _HEARS.get(type(record))
        if handler is not None:
            handler(self, record)

    # ── the run ──

    def begin(self, what: str, about: str) -> None:
        self.marks.append(Mark(self.at, what, about))
        self.journey_at, self.is_working = self.at, True

    def end(self, state: str, about: str) -> None:
        self.marks.append(Mark(self.at, state, about))
        self._worked(self.at)

    def _worked(self, until: float) -> None:
        if self.is_working:
            self.run.bars.append(Bar("", self.journey_at, until, "work", "a process worked on it"))
        self.is_working = False

    def _died(self, at: float) -> None:
        """Close what was under way when a process died: nobody knows when exactly, so at its last record."""
        self.marks.append(Mark(at, "died", "the process died; this was its last record"))
        self._worked(at)
        for path, bar in list(self.under_way.items()):
            if bar.state == "running" and path not in self.reviewed:
                self.close(path, "lost", "its process died", at)

    # ── bars ──

    def row_of(self, path: str, kind: str) -> Row:
        names = names_in(path)
        row = self.rows.get(names)
        if row is None:
            row = self.rows[names] = Row(names[-1], len(names) - 1, kind)
        if path not in self.calls:
            self.calls.add(path)
            row.count += 1
        row.kind = kind if row.kind == "call" else row.kind
        return row

    def start(self, path: str, kind: str, state: str, about: str = "") -> None:
        row = self.row_of(path, kind)
        bar = self.under_way[path] = Bar(path, self.at, self.at, state, about)
        row.bars.append(bar)

    def close(self, path: str, state: str, about: str, at: float | None = None) -> None:
        bar = self.under_way.pop(path, None)
        if bar is None:  # its start is in an earlier journey: what is left of it began with this one
            bar = Bar(path, self.journey_at, self.at, state)
            self.row_of(path, "step").bars.append(bar)
        end = self.reviewed.pop(path, self.at if at is None else at)
        bar.end, bar.state, bar.about = end, state, about

    def settle(self, path: str, state: str, about: str) -> None:
        """End an effect: what was in doubt keeps its own bar up to here."""
        bar = self.under_way.get(path)
        if bar is not None and bar.state == "doubt":
            self.under_way.pop(path)
            bar.end = self.at
            self.row_of(path, "effect").bars.append(Bar(path, self.at, self.at, state, about))
        else:
            self.close(path, state, about)

    def wait(self, path: str, until: float, reason: str) -> None:
        row = self.row_of(path, "step") if path else self.run
        row.bars.append(Bar(path, self.at, max(until, self.at), "wait", reason))

    def seconds(self, moment: str) -> float:
        assert self.began is not None
        return (parse_time(moment) - self.began).total_seconds()

    # ── the end ──

    def finished(self, now: datetime, *, is_held: bool, started_at: str) -> Timeline:
        if self.began is None:
            return Timeline(started_at)
        ended = not self.is_working
        edge = self.at if ended and not self.asked else max(self.at, (now - self.began).total_seconds())
        if self.is_working and not is_held:
            self._died(self.at)
        self._worked(edge)
        for path in [*self.reviewed]:
            self.close(path, "returned", "its output is kept and waits for a review")
        for bar in (*self.under_way.values(), *self.asked.values()):
            bar.end = edge
        rows = [self.run, *_nested(self.rows)]
        for row in rows:
            _stack(row, edge)
        left_out = max(len(rows) - ROWS_MAX, 0)
        return Timeline(started_at, edge, rows[:ROWS_MAX], self.marks, left_out)


def _nested(rows: dict[tuple[str, ...], Row]) -> list[Row]:
    """Return rows in order of their first bar, inner ones below their step."""
    inside: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for names in rows:
        inside.setdefault(names[:-1], []).append(names)

    def below(body: tuple[str, ...]) -> list[Row]:
        return [row for names in inside.get(body, ()) for row in (rows[names], *below(names))]

    return below(())


def _stack(row: Row, edge: float) -> None:
    """Give bars that overlap lanes of their own, the first one free from above."""
    free_from: list[float] = []
    kept: list[Bar] = []
    for bar in sorted(row.bars, key=lambda bar: bar.start):
        bar.start, bar.end = min(bar.start, edge), min(bar.end, edge)
        lane = next((n for n, free in enumerate(free_from) if free <= bar.start), len(free_from))
        if lane == LANES_MAX:
            row.beyond += 1
            continue
        if lane == len(free_from):
            free_from.append(0.0)
        free_from[lane], bar.lane = bar.end, lane
        kept.append(bar)
    row.bars, row.lanes = kept, max(len(free_from), 1)


# ── one function per kind of record ─────────────────────────────────────────────────────────────────


def _run_started(f: _Fold, r: RunStarted) -> None:
    f.begin("started", f"task {r.task} started")


def _run_resumed(f: _Fold, r: RunResumed) -> None:
    f.begin("resumed", f"resumed, number {r.number}")


def _run_ended(f: _Fold, r: RunEnded) -> None:
    f.end(r.status, str(r.error) if r.error else r.reason or "")
    if r.status == RunStatus.WAITING and r.until:
        f.wait("", f.seconds(r.until), r.reason or "")


def _cancel(f: _Fold, r: CancelEntered) -> None:
    f.marks.append(Mark(f.at, "cancelled", f"cancelled by {r.by}"))


def _step_started(f: _Fold, r: StepStarted) -> None:
    if r.path in f.reviewed:
        f.close(r.path, "returned", "its output was sent back")
    f.start(r.path, "step", "running", f"attempt {r.attempt}")


def _step_verified(f: _Fold, r: StepVerified) -> None:
    f.close(r.path, "verified", f"attempt {r.attempt} verified")


def _step_failed(f: _Fold, r: StepFailedNoted) -> None:
    f.close(r.path, "failed", f"attempt {r.attempt}: {r.error}")


def _returned(f: _Fold, r: StartReturned) -> None:
    f.close(r.path, "returned", f"attempt {r.attempt} was stopped in order")


def _intent(f: _Fold, r: IntentRecorded) -> None:
    before = f.under_way.get(r.path)
    if before is not None:
        f.settle(r.path, "rejected", "sent again")
    f.start(r.path, "effect", "doubt", f"attempt {r.attempt}, key {r.key}: outcome not known")


def _outcome(f: _Fold, r: OutcomeRecorded) -> None:
    if r.outcome == Outcome.UNKNOWN:
        bar = f.under_way.get(r.path)
        if bar is not None:
            bar.about = str(r.error or "outcome not known")
        return
    about = f"reference {r.ref}" if r.ref else r.outcome
    if r.recovered or r.adopted or r.late:
        f.settle(r.path, str(r.outcome), f"{about}, found afterwards")
    else:
        f.close(r.path, str(r.outcome), about)


def _shadowed(f: _Fold, r: EffectShadowed) -> None:
    f.start(r.path, "effect", "shadowed", "it would be sent; nothing was")
    f.under_way.pop(r.path)


def _refused(f: _Fold, r: EffectRefused) -> None:
    f.start(r.path, "effect", "rejected", f"the task does not hold the permission {r.permission}")
    f.under_way.pop(r.path)


def _waited(f: _Fold, r: WaitRecorded) -> None:
    f.wait(r.path, f.seconds(r.until), r.reason)


def _asked(f: _Fold, r: QuestionAsked) -> None:
    bar = f.asked[r.question_id] = Bar(r.path, f.at, f.at, "asking", r.sentence)
    row = f.row_of(r.path, "call") if r.path else f.run
    row.bars.append(bar)
    if r.path in f.under_way and f.under_way[r.path].state == "running":
        f.reviewed.setdefault(r.path, f.at)  # asked anew it took no longer


def _answered(f: _Fold, r: AnswerEntered) -> None:
    bar = f.asked.pop(r.question_id, None)
    if bar is not None:
        bar.end = max(bar.start, min(f.at, f.seconds(r.answered_at)))
    f.marks.append(Mark(f.at, "answered", f"{r.choice} by {r.by}"))


_HEARS: dict[type[Record], Callable[[_Fold, Any], None]] = {
    RunStarted: _run_started,
    RunResumed: _run_resumed,
    RunEnded: _run_ended,
    CancelEntered: _cancel,
    StepStarted: _step_started,
    StepVerified: _step_verified,
    StepFailedNoted: _step_failed,
    StartReturned: _returned,
    IntentRecorded: _intent,
    OutcomeRecorded: _outcome,
    EffectShadowed: _shadowed,
    EffectRefused: _refused,
    WaitRecorded: _waited,
    QuestionAsked: _asked,
    AnswerEntered: _answered,
}
"""What each kind of record draws; the others draw nothing."""
