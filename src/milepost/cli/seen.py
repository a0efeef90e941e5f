"""What a live view knows: durable records folded into what is under way now. Draws nothing.

Hears records from whichever thread made them durable, so everything is under one lock. Called by `live`.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from milepost.protocol.keys import name_in
from milepost.records.model import (
    EffectShadowed,
    HeartbeatRecorded,
    IntentRecorded,
    OutcomeRecorded,
    Record,
    StartReturned,
    StepFailedNoted,
    StepStarted,
    StepVerified,
)
from milepost.records.naming import body_of
from milepost.records.times import parse_time
from milepost.runtime.clock import SystemClock
from milepost.runtime.leases import active_runs
from milepost.views.summaries import how_far
from milepost.views.words import lasting, until

SHOWN_MAX = 8
"""Steps under way that are shown one by one."""
STOPPING = "stopping at the next boundary; a second signal stops at once"


@dataclass(slots=True)
class UnderWay:
    """One step or effect that has started and not ended."""

    attempt: int
    since: float
    progress: str = ""


@dataclass(slots=True)
class Seen:
    """Everything the view may show of one run."""

    began: float = field(default_factory=time.monotonic)
    under_way: dict[str, UnderWay] = field(default_factory=dict)
    siblings: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)  # body, name -> path -> number
    verified: int = 0
    applied: int = 0
    shadowed: int = 0
    shadow: bool = False
    wait: tuple[str, str] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def hear(self, record: Record) -> None:
        """Fold one durable record in."""
        with self._lock:
            path = getattr(record, "path", None)
            self.shadowed += isinstance(record, EffectShadowed)
            if isinstance(record, (StepStarted, IntentRecorded)):
                self._start(record.path, record.attempt)
            elif isinstance(record, HeartbeatRecorded) and path in self.under_way:
                self.under_way[path].progress = f"{how_far(record)} {record.note}".rstrip()
            elif isinstance(record, (StepVerified, StepFailedNoted, StartReturned, OutcomeRecorded)):
                self._end(record.path, record)

    def wait_for(self, moment: str, reason: str) -> None:
        """Note the next time that is waited for."""
        with self._lock:
            if self.wait is None or moment < self.wait[0] or parse_time(self.wait[0]) <= SystemClock().now():
                self.wait = (moment, reason)

    def _start(self, path: str, attempt: int) -> None:
        self.under_way[path] = UnderWay(attempt, time.monotonic())
        siblings = self.siblings.setdefault((body_of(path), name_in(path)), {})
        siblings.setdefault(path, len(siblings) + 1)

    def _end(self, path: str, record: Record) -> None:
        self.under_way.pop(path, None)
        self.verified += isinstance(record, StepVerified)
        self.applied += isinstance(record, OutcomeRecorded) and record.outcome == "applied"

    def lines(self) -> list[str]:
        """Return what is shown now, one line each: the sum, what runs, what is waited for, whether it stops."""
        with self._lock:
            shown = [self._line(path, step) for path, step in list(self.under_way.items())[-SHOWN_MAX:]]
            more = len(self.under_way) - len(shown)
            wait = self._wait_line()
            effects = f"{self.shadowed} shadowed" if self.shadow else f"{self.applied} applied"
            sums = f"{self.verified} verified, {effects}, {lasting(time.monotonic() - self.began)}"
            sums = f"SHADOW, nothing is sent: {sums}" if self.shadow else sums
        stopping = [STOPPING] if is_stopping() else []
        return [sums, *shown, *([f"  and {more} more"] if more > 0 else []), *wait, *stopping]

    def _line(self, path: str, step: UnderWay) -> str:
        attempt = f", attempt {step.attempt}" if step.attempt > 1 else ""
        progress = f", {step.progress}" if step.progress else ""
        return f"  {path}{self._item(path)}{attempt}{progress}, {lasting(time.monotonic() - step.since)}"

    def _item(self, path: str) -> str:
        """Say which of its siblings a call is, when it has any: ` (item 3 of 8 so far)`."""
        siblings = self.siblings.get((body_of(path), name_in(path)), {})
        return f" (item {siblings[path]} of {len(siblings)} so far)" if len(siblings) > 1 else ""

    def _wait_line(self) -> list[str]:
        now = SystemClock().now()
        if self.wait is None or parse_time(self.wait[0]) <= now:
            return []
        return [f"  waits, goes on {until(self.wait[0], now)}: {self.wait[1]}"]


def is_stopping() -> bool:
    """Say whether a run of this process was asked to stop or to end."""
    return any(run.stop_signal is not None or run.cancel_heard for run in active_runs())
