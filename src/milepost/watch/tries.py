"""When a run may be started (again): waits that double, and a bound that only progress or a person resets. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from milepost.config import WatchConfig
from milepost.records.times import format_time, parse_time


@dataclass(frozen=True, slots=True)
class Seen:
    """A run as it stands: the word for it, its last record and token, how much was verified and applied.

    `token` is that of its holder, also of one that died; 0 when nobody holds it.
    """

    run_id: str
    word: str
    head_seq: int
    token: int
    brought: int


@dataclass(frozen=True, slots=True)
class Tries:
    """Starts of one run in a row that did not end well. `settled`: how the last one ended has been seen."""

    count: int
    next_at: str
    word: str
    head_seq: int
    token: int
    brought: int
    settled: bool = False


def valid(tries: Tries | None, seen: Seen) -> Tries | None:
    """Return the tries that still count: none once somebody else has moved the run since the last one ended."""
    if tries is None or not tries.settled:
        return tries
    is_same = (tries.word, tries.head_seq, tries.token) == (seen.word, seen.head_seq, seen.token)
    return tries if is_same else None


def is_given_up(tries: Tries | None, config: WatchConfig) -> bool:
    """Say whether a run was started as often as the bound allows."""
    return tries is not None and tries.count >= config.restarts


def may_start(tries: Tries | None, config: WatchConfig, now: datetime) -> bool:
    """Say whether a run may be started now."""
    return tries is None or (not is_given_up(tries, config) and parse_time(tries.next_at) <= now)


def started(tries: Tries | None, seen: Seen, config: WatchConfig, now: datetime) -> Tries:
    """Count a start; what was brought since the last one begins the row anew."""
    count = 1 if tries is None or seen.brought > tries.brought else tries.count + 1
    return _tries(count, seen, config, now, settled=False)


def ended_badly(tries: Tries, seen: Seen, config: WatchConfig, now: datetime) -> Tries:
    """Note how a start ended that brought no orderly end: the wait counts from here."""
    count = 1 if seen.brought > tries.brought else tries.count
    return _tries(count, seen, config, now, settled=True)


def _tries(count: int, seen: Seen, config: WatchConfig, now: datetime, *, settled: bool) -> Tries:
    next_at = format_time(now + wait(count, config))
    return Tries(count, next_at, seen.word, seen.head_seq, seen.token, seen.brought, settled)


def wait(count: int, config: WatchConfig) -> timedelta:
    """Return how long to wait after so many starts in a row: doubled each time, up to the longest."""
    grown = config.first_wait.total_seconds() * 2 ** min(count - 1, 30)
    return min(timedelta(seconds=grown), config.longest_wait)
