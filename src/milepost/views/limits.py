"""A task's limits in words, and how much of them a run has used. Pure. Called by `map`, `show` and the console."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from milepost.protocol.limits import Limits, limits_from
from milepost.protocol.snapshot import Snapshot
from milepost.protocol.used import Use, uses
from milepost.records.model import ENDED
from milepost.records.times import parse_time
from milepost.views.words import counted, lasting


def limit_words(limits: Limits | None) -> list[str]:
    """Say what a task may use: one phrase for each limit."""
    if limits is None:
        return []
    declared = ((name, getattr(limits, name)) for name in _SAID)
    return [_SAID[name](value) for name, value in declared if value is not None]


_SAID: Mapping[str, Callable[[Any], str]] = {
    "resumes": lambda count: counted(count, "resume"),
    "cost": lambda amount: f"a cost of {Decimal(str(amount)):f}",
    "tokens": lambda count: f"{count:,} tokens",
    "wall": lambda time: f"{lasting(time.total_seconds())} since the first start",
    "same_error": lambda count: f"the same error {counted(count, 'time')} in a row",
    "sends": lambda rate: f"{counted(rate.count, 'send')} in {lasting(rate.per.total_seconds())} (waits)",
}


def limit_uses(s: Snapshot, now: datetime) -> list[Use]:
    """Return how much of each limit a run has used, by the limits it was last opened with."""
    at = parse_time(s.ended.at) if s.ended is not None and s.status in ENDED else now
    return uses(limits_from(s.limits), s.used, at)


def limit_objects(s: Snapshot, now: datetime) -> list[dict[str, Any]]:
    """Return the same as data: exact numbers as text, wall time in seconds."""
    return [
        {"limit": use.name, "used": str(use.used), "allowed": str(use.allowed), "says": str(use)}
        for use in limit_uses(s, now)
    ]
