"""The clock, injected everywhere: wall time for records, ticks that only go forward for leases and durations."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Protocol

from milepost.protocol.ops import Moment
from milepost.records.times import format_time


class Clock(Protocol):
    def now(self) -> datetime:
        """Return the wall time in UTC; it may step back and forward."""

    def ticks(self) -> float:
        """Return seconds on a clock that only goes forward, also while the machine sleeps."""

    def boot(self) -> str:
        """Return what names the machine's start that ticks count on from, "" where it cannot be told."""

    def about_to_wait(self, until: datetime) -> None:
        """Hear that somebody waits for a time; a movable clock goes there."""


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def ticks(self) -> float:
        return time.clock_gettime(_FORWARD)

    def boot(self) -> str:
        return boot_id()

    def about_to_wait(self, until: datetime) -> None:
        return None


def moment(clock: Clock) -> Moment:
    """Return what a clock says now."""
    at = clock.now()
    return Moment(at, format_time(at), clock.ticks(), clock.boot())


@cache
def boot_id() -> str:
    """Return the kernel's name for its start, "" where it has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


_FORWARD = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
