"""Times as records hold them: UTC, ISO 8601 with microseconds. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def parse_time(text: str) -> datetime:
    """Read a record's UTC time."""
    return datetime.fromisoformat(text)


def format_time(moment: datetime) -> str:
    """Write a UTC time as records hold it: ISO 8601, microseconds, `+00:00`."""
    global _last
    second, text = _last
    passed = moment - second
    if passed.days or passed.seconds:
        second = moment.astimezone(UTC).replace(microsecond=0)
        passed, text = moment - second, second.isoformat()[:-6]
        _last = second, text
    return f"{text}.{passed.microseconds:06d}+00:00"


_last = datetime.fromtimestamp(0, UTC), "1970-01-01T00:00:00"
"""The last second that was written, and how: it is the same for many a step, and `isoformat` takes thrice as long."""


def age(since: str, now: datetime) -> timedelta | None:
    """Return how long ago `since` was; None (cannot tell) when the clock ran backward past it."""
    passed = now - parse_time(since)
    return passed if passed >= timedelta(0) else None
