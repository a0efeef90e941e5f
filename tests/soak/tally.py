"""What every harness counts and how it says so: points tried, and the four things that must never happen.

A harness raises Violation at a point; `tallied` goes on to the next and prints the command that replays that one.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NoReturn, Protocol


class Harm(StrEnum):
    """The four questions that every harness asks."""

    REPEATED = "repeated"
    SKIPPED = "skipped"
    STUCK = "stuck"
    FALSELY_VERIFIED = "falsely_verified"


class Violation(Exception):
    """A promise was broken at a point."""

    def __init__(self, harm: Harm, found: str) -> None:
        super().__init__(f"{harm}: {found}")
        self.harm = harm


class NotReached(Exception):
    """The run ended before it came to this point: nothing was tried."""


class Missing(Exception):
    """This machine lacks what the harness needs; the message says what."""


@dataclass
class Tally:
    """What came of a harness. `skipped` counts steps or effects that were left out, never points."""

    harness: str
    kind: str
    seed: int | None
    of: int = 0  # points there are
    tried: int = 0
    unreached: int = 0
    harms: dict[Harm, int] = field(default_factory=lambda: dict.fromkeys(Harm, 0))
    seconds: float = 0.0
    notes: str = ""

    @property
    def clean(self) -> bool:
        return not any(self.harms.values())

    def line(self) -> str:
        """Say it in one line."""
        harms = ", ".join(f"{count} {harm.value.replace('_', ' ')}" for harm, count in self.harms.items())
        notes = f" ({self.notes})" if self.notes else ""
        return f"{self.harness}: {self.tried} of {self.of} {self.kind} in {self.seconds:.0f} s: {harms}{notes}"

    def append(self) -> None:
        """Append a line of JSON to the file that MILEPOST_SOAK_RESULTS names, if any. Crash: the line or none."""
        path = os.environ.get("MILEPOST_SOAK_RESULTS")
        if path:
            told = {
                "harness": self.harness,
                "kind": self.kind,
                "tried": self.tried,
                **{harm.value: count for harm, count in self.harms.items()},
                "seed": self.seed,
                "seconds": round(self.seconds, 1),
                "notes": self.notes or f"{self.of} points in all, {self.unreached} not reached",
            }
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(json.dumps(told) + "\n")


Try = Callable[[str], None]
Points = tuple[Sequence[str], Try]


class Harness(Protocol):
    """What a harness module offers: what it is called, what it counts, its points and how one is tried."""

    KIND: str

    def opened(self, folder: Path) -> AbstractContextManager[Points]: ...


def tallied(harness: Harness, name: str, folder: Path, *, seconds: float, seed: int, only: str | None = None) -> Tally:
    """Try points in an order drawn from the seed until the time is over, at least one; or the one that is named.

    What was counted until Ctrl-C or a signal is kept like the rest.
    """
    tally = Tally(name, harness.KIND, seed)
    began = time.monotonic()
    try:
        with harness.opened(folder) as (points, attempt):
            tally.of = len(points)
            for point in [only] if only is not None else random.Random(seed).sample(list(points), len(points)):
                if tally.tried and time.monotonic() - began > seconds:
                    break
                _try(tally, attempt, point)
    except KeyboardInterrupt:
        _kept(tally, began)
        raise
    return _kept(tally, began)


def _kept(tally: Tally, began: float) -> Tally:
    tally.seconds = time.monotonic() - began
    tally.append()
    return tally


def _try(tally: Tally, attempt: Try, point: str) -> None:
    try:
        attempt(point)
    except NotReached:
        tally.unreached += 1
        return
    except Violation as violation:
        tally.harms[violation.harm] += 1
        replay = f"{sys.executable} {Path(__file__).with_name('soak.py')} {tally.harness} --only '{point}'"
        print(f"{point}: {violation}\n  again: {replay}", file=sys.stderr, flush=True)
    tally.tried += 1


def broken(harm: Harm, found: object) -> NoReturn:
    """Raise a violation."""
    raise Violation(harm, str(found))


def every(points: Iterator[str]) -> list[str]:
    """Return points without repetition, in order."""
    return list(dict.fromkeys(points))
