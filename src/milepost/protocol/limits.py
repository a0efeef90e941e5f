"""Limits: what a whole run may use before a person is asked, and how fast it may send. The policy only. Pure.

What was used is counted by `used`, compared before each start by `within` and on each resume by `decide`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from milepost.errors import BadOption
from milepost.protocol.amounts import COUNT_MAX, amount_in, checked_duration, shown

RATE_COUNT_MAX = 1000
"""Sends a rate counts at most: so many times are kept."""


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `count` sends within any stretch of `per`; the next one waits, nobody is asked."""

    count: int
    per: timedelta

    def __post_init__(self) -> None:
        if type(self.count) is not int or not 1 <= self.count <= RATE_COUNT_MAX:
            raise BadOption(where="Rate(count=…)", reason=f"expected 1 to {RATE_COUNT_MAX}, found {shown(self.count)}")
        checked_duration("Rate(per=…)", self.per)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one run may use, all its resumes together; reaching one is a question: allow as much once more, or stop.

    `resumes`: how often it is resumed. `cost`, `tokens`: what its steps say with `spent()`, in one currency.
    `wall`: time since its first start, waits included. `same_error`: the same error so many times in a row without
    a checkpoint between. `sends`: a Rate of effects, which waits. Looked at before each step and each send, and on
    resume: what runs is never cut off.
    """

    resumes: int | None = None
    cost: Decimal | int | float | str | None = None
    tokens: int | None = None
    wall: timedelta | None = None
    same_error: int | None = None
    sends: Rate | None = None

    def __post_init__(self) -> None:
        for name in ("resumes", "tokens", "same_error"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or not 1 <= value <= COUNT_MAX):
                raise _bad(name, "a whole number from 1 on", value)
        if self.cost is not None and not amount_in(self.cost):
            raise _bad("cost", f"an amount above zero, at most {COUNT_MAX:,}", self.cost)
        if self.wall is not None:
            checked_duration("Limits(wall=…)", self.wall)
        if self.sends is not None and not isinstance(self.sends, Rate):
            raise _bad("sends", "a Rate", self.sends)

    @property
    def counts_spending(self) -> bool:
        """Say whether what a body spends has to be known at once, not only at its checkpoint."""
        return self.cost is not None or self.tokens is not None

    def to_json(self) -> dict[str, Any]:
        """Return the limits as a record holds them; those that are not set are left out."""
        sends = self.sends
        said = {
            "resumes": self.resumes,
            "cost": None if self.cost is None else str(Decimal(str(self.cost))),
            "tokens": self.tokens,
            "wall_s": None if self.wall is None else self.wall.total_seconds(),
            "same_error": self.same_error,
            "sends": None if sends is None else {"count": sends.count, "per_s": sends.per.total_seconds()},
        }
        return {name: value for name, value in said.items() if value is not None}


def limits_from(data: Mapping[str, Any]) -> Limits | None:
    """Read limits back from a record; None when it has none. Raises: BadOption, KeyError, TypeError."""
    if not data:
        return None
    sends, wall = data.get("sends"), data.get("wall_s")
    return Limits(
        resumes=data.get("resumes"),
        cost=data.get("cost"),
        tokens=data.get("tokens"),
        wall=None if wall is None else timedelta(seconds=wall),
        same_error=data.get("same_error"),
        sends=None if sends is None else Rate(sends["count"], timedelta(seconds=sends["per_s"])),
    )


def _bad(name: str, expected: str, found: object) -> BadOption:
    return BadOption(where=f"Limits({name}=…)", reason=f"expected {expected}, found {shown(found)}")
