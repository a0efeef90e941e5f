"""How a recorded text or value is said on a page: times as people say them, digests shortened, code as code.

Every text is made inert and escaped here before anything is put around it. Pure; called by the templates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from markupsafe import Markup, escape

from milepost.records.shown import cut, inert
from milepost.records.times import age, parse_time
from milepost.views.words import until

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?\+00:00"
IDENTIFIER = r"\bmp1-[a-z2-7]{32}\b|\b[0-9a-f]{40,64}\b"
TOKENS = re.compile(rf"`(?P<code>[^`\n]{{1,300}})`|(?P<time>{TIME})|(?P<id>{IDENTIFIER})")
SHORT_LENGTH = 12
"""Characters of a digest or key that are shown; the whole is one click away."""
LINE_LENGTH_MAX = 110
"""Characters of a request that a list shows."""
DAYS_SAID_MAX = 14
"""Days after which a date says more than an age."""


# ── times ──


def since(moment: str, now: datetime) -> str:
    """Say roughly how long ago a recorded time was; after two weeks, its date."""
    passed = age(moment, now)
    if passed is None:
        return "in the future by this clock"
    minutes = int(passed.total_seconds() // 60)
    if minutes < 1:
        return "just now"
    if minutes < 60:
        return f"{minutes} min ago"
    if minutes < 24 * 60:
        return f"{minutes // 60} h ago"
    return f"{passed.days} d ago" if passed.days <= DAYS_SAID_MAX else day(moment, now)


def day(moment: str, now: datetime) -> str:
    """Say the date of a recorded time; its year only when it is another: 30 Nov, 30 Nov 2025."""
    at = parse_time(moment)
    return f"{at.day} {at:%b}" + (f" {at.year}" if at.year != now.year else "")


def moment_words(moment: str, now: datetime) -> str:
    """Say a recorded time to the minute, and how far off it is when it lies ahead: 1 Dec 00:02 UTC, in 5 h 58 min."""
    at = parse_time(moment)
    ahead = f", {until(moment, now)}" if at > now else ""
    return f"{day(moment, now)} {at:%H:%M} UTC{ahead}"


# ── texts ──


def prose(text: object, now: datetime) -> Markup:
    """Show a sentence: what stands in backticks as code, times in words, digests and keys shortened."""
    shown, parts, end = inert(text), [], 0
    for found in TOKENS.finditer(shown):
        parts += [escape(shown[end : found.start()]), _token(found, now)]
        end = found.end()
    return Markup("").join([*parts, escape(shown[end:])])


def _token(found: re.Match[str], now: datetime) -> Markup:
    if found["code"]:
        return Markup("<code>{}</code>").format(found["code"])
    if found["time"]:
        return _time(found["time"], now)
    return Markup('<code class="short" title="{}">{}</code>').format(found["id"], shortened(found["id"]))


def _time(moment: str, now: datetime) -> Markup:
    try:
        said = moment_words(moment, now)
    except ValueError:  # digits that are no time, as somebody wrote them
        return escape(moment)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(moment, moment, said)


def shortened(text: str) -> str:
    """Cut a digest or key so that two of them can still be told apart."""
    return text if len(text) <= SHORT_LENGTH + 2 else f"{text[:SHORT_LENGTH]}…"


def key_shown(text: object) -> Markup:
    """Show a digest or key shortened, as a button that copies the whole; what somebody named themselves as it is."""
    whole = inert(text)
    if not re.fullmatch(IDENTIFIER, whole):
        return Markup("<code>{}</code>").format(whole)
    button = '<button type="button" class="short" data-copy="{0}" title="{0} (click: copy)">{1}</button>'
    return Markup(button).format(whole, shortened(whole))


def scalar(value: Any, now: datetime) -> Markup:
    """Show one plain value of a record."""
    if value is None:
        return Markup('<span class="nothing">none</span>')
    if not isinstance(value, str):
        return Markup("<code>{}</code>").format(json.dumps(value))
    if re.fullmatch(IDENTIFIER, value):
        return key_shown(value)
    if re.fullmatch(TIME, value):
        return _time(value, now)
    if "\n" in value:
        return Markup('<pre class="text">{}</pre>').format(inert(value, lines=True))
    return prose(value, now) if value else Markup('<span class="nothing">empty text</span>')


def in_short(value: Any) -> str:
    """Say a request's arguments in one line for a list: supplier: Nordic Bearings AB, total: 1204.50."""
    return cut(_line(_arguments(value)), LINE_LENGTH_MAX)


def is_said_whole(value: Any) -> bool:
    """Say whether `in_short` leaves nothing of a request out: what is allowed must be seen, not its summary."""
    inner = _arguments(value)
    given = inner.values() if isinstance(inner, Mapping) else [inner]
    is_plain = not any(isinstance(one, (Mapping, Sequence)) and not isinstance(one, str) for one in given)
    return is_plain and len(_line(inner)) <= LINE_LENGTH_MAX


def _arguments(value: Any) -> Any:
    return value.get("arguments", value) if isinstance(value, Mapping) else value


def _line(inner: Any) -> str:
    if not isinstance(inner, Mapping):
        return _brief(inner)
    return ", ".join(f"{name}: {_brief(given)}" for name, given in inner.items())


def _brief(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence) and value and not all(isinstance(item, (str, int, float)) for item in value):
        return f"{len(value)} items"
    return json.dumps(value, ensure_ascii=False)


def canonical_text(value: Any) -> str:
    """Return the exact canonical text of a value that was read from one."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
