"""The clock of one world: real time, moved on by every wait, the same for all processes of the world.

So nobody sits out a retry, a `settle` or a Retry-After. Ticks move on by the waits of their own process only: leases
are about living processes, and none may seem silent because another one waits.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from milepost.runtime.clock import SystemClock

_WIDTH = 24


def moved_on(path: Path) -> timedelta:
    """Return by how much the waits of a world have moved its time on."""
    try:
        return timedelta(seconds=float(path.read_text(encoding="ascii")))
    except (FileNotFoundError, ValueError):
        return timedelta(0)


class MovedClock(SystemClock):
    """The machine's clock plus what was waited for; kept in a file beside the world."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._waited_s = 0.0

    def now(self) -> datetime:
        return datetime.now(UTC) + moved_on(self._path)

    def about_to_wait(self, until: datetime) -> None:
        """Go there instead. Crash: the old time or the new one."""
        by = max(timedelta(0), until - self.now()) + timedelta(milliseconds=1)
        self.move(by)
        self._waited_s += by.total_seconds()

    def ticks(self) -> float:
        return super().ticks() + self._waited_s

    def move(self, by: timedelta) -> None:
        """Move the time of all processes of the world on. Crash: the old time or the new one."""
        seconds = (moved_on(self._path) + by).total_seconds()
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(descriptor, f"{seconds:{_WIDTH}.6f}".encode("ascii"), 0)
        finally:
            os.close(descriptor)
