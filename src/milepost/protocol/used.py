"""What a run used, counted record by record, and how that compares with its limits. Pure.

Part of the snapshot, which folds every record into it: so a restart forgets nothing. Called by `decide`, `within` and
whoever shows a run.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from milepost.protocol.amounts import added
from milepost.protocol.limits import RATE_COUNT_MAX, Limits
from milepost.records.frozen import frozen, slotted
from milepost.records.model import (
    EffectShadowed,
    ErrorRecord,
    IntentRecorded,
    Outcome,
    OutcomeRecorded,
    OutputRecorded,
    Record,
    RunEnded,
    RunResumed,
    RunStarted,
    RunStatus,
    SpentRecorded,
    StepFailedNoted,
    StepVerified,
)
from milepost.records.times import parse_time

_CHANGING = re.compile(r"0x[0-9a-f]+|\b[0-9a-f-]{8,}\b|\d+", re.IGNORECASE)
"""Numbers, addresses and ids in an error's text: two errors that differ only in them are the same."""
_NOTHING = (Decimal(0), 0, 0)


@slotted
class Used:
    """What a run used so far. `since` holds, for each limit a person raised, what was used by then."""

    started_at: str = ""
    resumes: int = 0
    cost: Decimal = Decimal(0)
    tokens: int = 0
    input_tokens: int = 0  # of these, as far as their records were read
    currencies: set[str] = field(default_factory=set)  # of the cost, by what was read
    error: tuple[str, str] | None = None
    error_count: int = 0
    sent: deque[str] = field(default_factory=lambda: deque(maxlen=RATE_COUNT_MAX))  # when, newest last
    since: dict[str, Decimal] = field(default_factory=dict)
    _said: dict[tuple[str, int], tuple[Decimal, int, int]] = field(default_factory=dict)  # of one attempt
    _failed: set[tuple[str, int]] = field(default_factory=set)  # attempts: a failure the plan caught is noted twice
    _has_failed: bool = False  # something did since the last resume

    def hear(self, record: Record) -> None:
        """Count one record in."""
        count = _COUNTS.get(type(record))
        if count is not None:
            count(self, record)

    def spend(self, path: str, attempt: int, spent: Mapping[str, Any], *, in_all: bool) -> None:
        """Count what an attempt spent: more than before, or (in_all) what it came to, of which a part may be known."""
        cost, put_in, put_out = _cost(spent), _tokens(spent, "input_tokens"), _tokens(spent, "output_tokens")
        known_cost, known_in, known_out = self._said.get((path, attempt), _NOTHING)
        if in_all:
            cost = max(added(cost, -known_cost), Decimal(0))
            put_in, put_out = max(put_in - known_in, 0), max(put_out - known_out, 0)
        self.cost, self.tokens = added(self.cost, cost), self.tokens + put_in + put_out
        self.input_tokens += put_in
        if cost:
            self.currencies.add(str(spent.get("currency", "")))
        self._said[path, attempt] = added(known_cost, cost), known_in + put_in, known_out + put_out

    def fail(self, error: ErrorRecord, path: str, attempt: int) -> None:
        """Count an error that ended an attempt; another one than the last begins anew."""
        if (path, attempt) in self._failed:
            return
        self._failed.add((path, attempt))
        self._has_failed = True
        found = (error.type, _CHANGING.sub("#", error.text))
        self.error_count = self.error_count + 1 if found == self.error else 1
        self.error = found

    def succeed(self) -> None:
        """Hear that something was brought: no error is in a row any more."""
        self.error, self.error_count = None, 0

    def amount(self, name: str, at: datetime) -> Decimal:
        """Return how much of one limit was used in all at a time."""
        if name == "wall":
            passed = at - parse_time(self.started_at) if self.started_at else timedelta(0)
            return max(Decimal(str(passed.total_seconds())), Decimal(0))
        counted = {"resumes": self.resumes, "tokens": self.tokens, "same_error": self.error_count}
        return self.cost if name == "cost" else Decimal(counted[name])

    def allow_again(self, name: str, at: str) -> None:
        """Act on a person's *again*: what was used so far no longer counts against this limit."""
        if name == "same_error":
            self.succeed()
        elif name in NAMES:
            self.since[name] = self.amount(name, parse_time(at))


def _cost(spent: Mapping[str, Any]) -> Decimal:
    """Return what a record says was spent. What is no amount, of code that still let it through, counts nothing."""
    try:
        cost = Decimal(str(spent.get("cost", 0)))
    except InvalidOperation:
        return Decimal(0)
    return cost if cost.is_finite() and cost > 0 else Decimal(0)


def _tokens(spent: Mapping[str, Any], name: str) -> int:
    count = spent.get(name, 0)
    return count if isinstance(count, int) and count > 0 else 0


# ── counting, one function per kind of record ───────────────────────────────────────────────────────


def _started(used: Used, r: RunStarted) -> None:
    used.started_at = r.at


def _resumed(used: Used, r: RunResumed) -> None:
    used.resumes, used._has_failed = r.number, False


def _spent(used: Used, r: SpentRecorded) -> None:
    used.spend(r.path, r.attempt, r.spent, in_all=False)


def _output(used: Used, r: OutputRecorded) -> None:
    if r.spent:
        used.spend(r.path, r.attempt, r.spent, in_all=True)


def _verified(used: Used, r: StepVerified) -> None:
    if r.spent:
        used.spend(r.path, r.attempt, r.spent, in_all=True)
    used.succeed()


def _shadowed(used: Used, r: EffectShadowed) -> None:
    used.succeed()


def _failed(used: Used, r: StepFailedNoted) -> None:
    used.fail(r.error, r.path, r.attempt)


def _intended(used: Used, r: IntentRecorded) -> None:
    used.sent.append(r.at)


def _came_out(used: Used, r: OutcomeRecorded) -> None:
    if r.spent:
        used.spend(r.path, r.attempt, r.spent, in_all=True)
    if r.outcome == Outcome.APPLIED:
        used.succeed()
    elif r.error is not None:
        used.fail(r.error, r.path, r.attempt)


def _ended(used: Used, r: RunEnded) -> None:
    """Count what the plan raised between its steps; what a step raised was counted where it was noted."""
    if r.status == RunStatus.FAILED and r.error is not None and not used._has_failed:
        used.fail(r.error, "", used.resumes)


_COUNTS: Mapping[type[Record], Callable[[Used, Any], None]] = {
    RunStarted: _started,
    RunResumed: _resumed,
    SpentRecorded: _spent,
    OutputRecorded: _output,
    StepVerified: _verified,
    EffectShadowed: _shadowed,
    StepFailedNoted: _failed,
    IntentRecorded: _intended,
    OutcomeRecorded: _came_out,
    RunEnded: _ended,
}


# ── comparing ───────────────────────────────────────────────────────────────────────────────────────

NAMES = ("resumes", "cost", "tokens", "wall", "same_error")
"""The limits that end in a question, in the order they are looked at and shown."""


@frozen
class Use:
    """One limit: how much was used of how much is allowed, answers included. `wall` is in seconds."""

    name: str
    used: Decimal
    allowed: Decimal

    @property
    def reached(self) -> bool:
        return self.used > self.allowed if self.name == "resumes" else self.used >= self.allowed

    def __str__(self) -> str:
        return _SAID[self.name](self.used, self.allowed)


def uses(limits: Limits | None, used: Used, at: datetime) -> list[Use]:
    """Compare what was used by a time with each limit that ends in a question."""
    if limits is None:
        return []
    declared = ((name, _limit(limits, name)) for name in NAMES)
    return [
        Use(name, used.amount(name, at), used.since.get(name, Decimal(0)) + limit)
        for name, limit in declared
        if limit is not None
    ]


def _limit(limits: Limits, name: str) -> Decimal | None:
    value = getattr(limits, name)
    if value is None:
        return None
    return Decimal(str(value.total_seconds() if isinstance(value, timedelta) else value))


def first_reached(limits: Limits | None, used: Used, at: datetime) -> Use | None:
    """Return the first limit that is used up, None when the run may go on."""
    return next((use for use in uses(limits, used, at) if use.reached), None)


def _time(seconds: Decimal) -> str:
    return str(timedelta(seconds=int(seconds)))


_SAID: Mapping[str, Callable[[Decimal, Decimal], str]] = {
    "resumes": lambda used, allowed: f"{used} of {allowed} resumes",
    "cost": lambda used, allowed: f"{used.normalize():f} of {allowed.normalize():f} cost",
    "tokens": lambda used, allowed: f"{used:,} of {allowed:,} tokens",
    "wall": lambda used, allowed: f"{_time(used)} of the {_time(allowed)} allowed since its first start",
    "same_error": lambda used, allowed: f"the same error {used} of {allowed} times in a row",
}
