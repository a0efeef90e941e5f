"""Clocks that only tests move: nobody sleeps, a wait jumps to the time it waits for."""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

START = datetime(2026, 11, 2, 8, 0, tzinfo=UTC)


class MovableClock:
    """Stands still until it is moved, or until somebody waits. `waits` lists the times that were waited for."""

    def __init__(self, start: datetime = START) -> None:
        self._lock = threading.Lock()
        self._now = start
        self._ticks = 0.0
        self.waits: list[datetime] = []

    def now(self) -> datetime:
        with self._lock:
            return self._now

    def ticks(self) -> float:
        with self._lock:
            return self._ticks

    def boot(self) -> str:
        return "movable"

    def about_to_wait(self, until: datetime) -> None:
        self.waits.append(until)
        self.move(max(timedelta(0), until - self.now()))

    def move(self, by: timedelta) -> None:
        """Move the wall time by so much (also back); ticks only go forward."""
        with self._lock:
            self._now += by
            self._ticks += max(0.0, by.total_seconds())


class SharedClock:
    """A movable clock in a file, one for all processes of a test: killing one does not turn time back.

    The file holds two numbers: seconds that the wall time is past START, and ticks.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def _read(self) -> tuple[float, float]:
        try:
            wall, ticks = self._path.read_text(encoding="ascii").split()
        except FileNotFoundError:
            return 0.0, 0.0
        return float(wall), float(ticks)

    def now(self) -> datetime:
        return START + timedelta(seconds=self._read()[0])

    def ticks(self) -> float:
        return self._read()[1]

    def boot(self) -> str:
        return "shared"

    def about_to_wait(self, until: datetime) -> None:
        self.move(max(timedelta(0), until - self.now()))

    def move(self, by: timedelta) -> None:
        """Let time pass for all processes. Crash: the old time or the new one."""
        wall, ticks = self._read()
        self._write(wall + by.total_seconds(), ticks + by.total_seconds())

    def step(self, by: timedelta) -> None:
        """Set the wall clock forward or back without any time passing. Crash: the old time or the new one."""
        wall, ticks = self._read()
        self._write(wall + by.total_seconds(), ticks)

    def _write(self, wall: float, ticks: float) -> None:
        new = self._path.with_suffix(".new")
        new.write_text(f"{wall!r} {ticks!r}", encoding="ascii")
        os.replace(new, self._path)
