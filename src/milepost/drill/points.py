"""Crash points by name: read from what an undisturbed run passed, chosen, and told to a process. Pure.

A point is the n-th time a label passes in a phase: `append:step_verified:durable:3`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Point:
    """The `number`-th time (from 1) that `label` passes in `phase`."""

    label: str
    phase: str
    number: int

    def __str__(self) -> str:
        return f"{self.label}:{self.phase}:{self.number}"

    @property
    def place(self) -> str:
        """Return it as MILEPOST_CRASH_AT wants it."""
        return f"{self.label} {self.phase} {self.number}"


def passed(lines: Iterable[str]) -> list[Point]:
    """Number the points of a run, in the order it passed them."""
    counts: Counter[str] = Counter()
    found: list[Point] = []
    for line in lines:
        counts[line] += 1
        label, _, phase = line.rpartition(" ")
        found.append(Point(label, phase, counts[line]))
    return found


def last(points: Sequence[Point], label: str, phase: str) -> Point | None:
    """Return the last point of a label that contains `label`."""
    return next((p for p in reversed(points) if label in p.label and p.phase == phase), None)


def sample(things: Sequence[T], count: int | None, seed: int) -> list[T]:
    """Return all, or so many of them drawn with the seed, in their order."""
    if count is None or count >= len(things):
        return list(things)
    chosen = sorted(random.Random(seed).sample(range(len(things)), count))
    return [things[place] for place in chosen]
