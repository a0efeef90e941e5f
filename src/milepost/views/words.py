"""How times, sizes and amounts are said to people. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from milepost.protocol.questions import counted as counted  # said by questions, too
from milepost.records.times import age, parse_time


def lasting(seconds: float) -> str:
    """Say a duration: 12 ms, 0.4 s, 12 s, 3 min 5 s, 2 h 14 min, 3 d 4 h."""
    if seconds < 0.1:
        return f"{seconds * 1000:.0f} ms" if seconds else "0 s"
    if seconds < 10:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    whole = int(seconds)
    for unit, size, small, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {unit}" + (f" {rest} {small}" if rest else "")
    return f"{whole} s"


def ago(since: str, now: datetime) -> str:
    """Say how long ago a recorded time was; a clock that ran backward makes it impossible to tell."""
    passed = age(since, now)
    return "in the future by this clock" if passed is None else f"{lasting(passed.total_seconds())} ago"


def until(moment: str, now: datetime) -> str:
    """Say how far off a recorded time is."""
    left = (parse_time(moment) - now).total_seconds()
    return f"in {lasting(left)}" if left > 0 else "now"


def clock_time(moment: str) -> str:
    """Show a recorded time to the second: 2026-10-31 12:03:04 UTC."""
    return parse_time(moment).strftime("%Y-%m-%d %H:%M:%S UTC")


def amount(size: int) -> str:
    """Say a size in bytes: 312 B, 4.2 KB, 17 MB; from TB on nothing larger."""
    if size < 1000:
        return f"{size} B"
    value = float(size)
    unit = ""
    for unit in ("KB", "MB", "GB", "TB"):  # noqa: B007 – the one it stopped at
        value /= 1000
        if value < 1000:
            break
    return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"


def cost(spent: Mapping[str, Any] | None) -> str:
    """Say what a model took: 1,200 + 300 tokens, 0.0123 USD."""
    if not spent:
        return ""
    tokens = f"{spent.get('input_tokens', 0):,} + {spent.get('output_tokens', 0):,} tokens"
    money = str(spent.get("cost", "0"))
    return tokens if float(money) == 0 else f"{tokens}, {money} {spent.get('currency', '')}".rstrip()
