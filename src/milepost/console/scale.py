"""The time axis of a timeline: proportional while something runs, folded where nothing does. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

FOLDS_MAX = 12
"""Stretches without work that are folded; the longest ones."""
FOLD_WIDTH = 44.0
FOLD_SHARE = 0.06
"""A stretch is folded when it is longer than this share of the time that something ran."""
TICKS = 6
TICK_ROOM = 56.0
"""Units that the label of a tick needs."""


@dataclass(frozen=True, slots=True)
class Fold:
    """A stretch in which nothing ran, drawn narrow."""

    left: float
    right: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Scale:
    """Seconds to units: straight between the points, which are in order."""

    seconds: Sequence[float]
    units: Sequence[float]
    folds: Sequence[Fold]

    def x(self, seconds: float) -> float:
        """Return where a moment is drawn."""
        at = min(max(bisect_right(self.seconds, seconds) - 1, 0), len(self.seconds) - 2)
        start, end = self.seconds[at], self.seconds[at + 1]
        share = (seconds - start) / (end - start) if end > start else 0.0
        return self.units[at] + min(max(share, 0.0), 1.0) * (self.units[at + 1] - self.units[at])

    def ticks(self) -> Iterator[float]:
        """Yield some round moments, none where its label would cover another or the length of a fold."""
        last = self.units[0] - TICK_ROOM
        for seconds in self._round_moments():
            x = self.x(seconds)
            near_fold = any(fold.left - TICK_ROOM < x < fold.right + 4 for fold in self.folds)
            if x >= last + TICK_ROOM and not near_fold and x <= self.units[-1] - TICK_ROOM / 2:
                last = x
                yield seconds

    def _round_moments(self) -> Iterator[float]:
        for start, end, left, right in zip(self.seconds, self.seconds[1:], self.units, self.units[1:], strict=False):
            if any(fold.left == left for fold in self.folds):
                continue
            width = self.units[-1] - self.units[0]
            count = int(TICKS * (right - left) / width) if width else 0
            every = _round((end - start) / max(count, 1))
            yield from _multiples(every, start, end, count)


def _multiples(every: float, start: float, end: float, count: int) -> Iterator[float]:
    first = int(start / every) + (start > 0)
    for number in range(first, first + count + 1):
        if start <= number * every < end:
            yield number * every


def _round(seconds: float) -> float:
    """Return the next length people count in."""
    lengths = (0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400)
    return next((length for length in lengths if length >= seconds), 604800.0)


def scale_of(busy: Iterable[tuple[float, float]], end: float, *, left: float, right: float) -> Scale:
    """Return the axis for the times at which something ran, from 0 to `end` seconds."""
    end = max(end, 0.001)
    idle = list(_idle(busy, end))
    folded = _to_fold(idle, end)
    room = (right - left) - FOLD_WIDTH * len(folded)
    running = end - sum(stop - start for start, stop in folded)
    per_second = room / max(running, 0.001)
    seconds, units, folds, x = [0.0], [left], [], left
    for start, stop in folded:
        x += (start - seconds[-1]) * per_second
        _point(seconds, units, start, x)
        folds.append(Fold(x, x + FOLD_WIDTH, stop - start))
        x += FOLD_WIDTH
        _point(seconds, units, stop, x)
    _point(seconds, units, end, right)
    return Scale(seconds, units, folds)


def _point(seconds: list[float], units: list[float], moment: float, x: float) -> None:
    if moment > seconds[-1]:
        seconds.append(moment)
        units.append(x)


def _idle(busy: Iterable[tuple[float, float]], end: float) -> Iterator[tuple[float, float]]:
    """Yield the stretches in which nothing ran."""
    free = 0.0
    for start, stop in sorted(busy):
        if start > free:
            yield free, start
        free = max(free, stop)
    if end > free:
        yield free, end


def _to_fold(idle: Sequence[tuple[float, float]], end: float) -> list[tuple[float, float]]:
    running = end - sum(stop - start for start, stop in idle)
    longest = sorted(idle, key=lambda stretch: stretch[0] - stretch[1])[:FOLDS_MAX]
    least = max(FOLD_SHARE * running, 1.0)
    return sorted(stretch for stretch in longest if stretch[1] - stretch[0] > least)
