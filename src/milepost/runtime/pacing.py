"""The places of sends under a rate: each is at least `per` after the one `count` places before it. Pure.

Begun with what the journal says was sent, so that a restart keeps to the rate, too. Called by `perform`, under a lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from datetime import datetime

from milepost.protocol.limits import Rate
from milepost.records.times import parse_time


class Pacing:
    """Hands out the places of one run's sends, in order."""

    def __init__(self, rate: Rate, sent: Iterable[str], now: datetime) -> None:
        self._per = rate.per
        # A time still to come was written by a clock that has been set back since: it can have been now at the latest.
        self._places = deque((min(parse_time(at), now) for at in sent), maxlen=rate.count)

    def next_place(self, now: datetime) -> datetime:
        """Take the next place: now, or later."""
        is_full = len(self._places) == self._places.maxlen
        place = max(now, self._places[0] + self._per) if is_full else now
        self._places.append(place)
        return place
