"""Templates, and how a value gets into a page: inert first, escaped second, whatever it is. Reads only its own files.

Nothing from a run is ever marked safe. What is drawn (`drawing`) is escaped where it is drawn.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from milepost.console.arranging import (
    are_plain,
    are_rows,
    arranged,
    change_parts,
    headline,
    hindrance,
    leading,
    parts_shown,
    role_shown,
)
from milepost.console.charts import days_svg, role_svg
from milepost.console.drawing import legend_svg, timeline_svg
from milepost.console.saying import (
    canonical_text,
    in_short,
    is_said_whole,
    key_shown,
    moment_words,
    prose,
    scalar,
    since,
)
from milepost.records.shown import inert
from milepost.views.opened import now
from milepost.views.words import amount, clock_time, counted, lasting

PRETTY_LENGTH_MAX = 100_000
"""Characters of one JSON value that a page shows."""


def render(template: str, **values: Any) -> str:
    """Return a page. Every text is made inert and escaped on its way out; an unknown name is an error."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("milepost.console"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_inert,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(FILTERS)
    environment.globals.update(GLOBALS)
    return environment


def _inert(value: Any) -> Any:
    return value if isinstance(value, Markup) or value is None else inert(value)


def lines(text: object) -> Markup:
    """Show a text with its line breaks, each line inert."""
    return escape(inert(text, lines=True))


def pretty(value: Any) -> Markup:
    """Show JSON indented and readable; a very long one is cut, and says so."""
    text = _json(value)
    if len(text) > PRETTY_LENGTH_MAX:
        left_out = f"… {len(text) - PRETTY_LENGTH_MAX:,} more characters: “This page as JSON” has them all"
        text = f"{text[:PRETTY_LENGTH_MAX]}\n{left_out}"
    return lines(text)


def editable(value: Any) -> Markup:
    """Show JSON whole, to be changed and sent back."""
    return lines(_json(value))


def _json(value: Any) -> str:
    """Write JSON indented; what is not printable is escaped as JSON does, so that it stays JSON."""
    text = json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def link(path: str, /, **query: object) -> str:
    """Return a link to a page of this console; what is None is left out."""
    given = [(name, str(value)) for name, value in query.items() if value is not None]
    return path + ("?" + urlencode(given) if given else "")


def _now(says: Callable[[Any, datetime], Any]) -> Callable[[Any], Any]:
    """Return a filter that says something by this machine's clock."""
    return lambda value: says(value, now())


def _today() -> str:
    return now().date().isoformat()


FILTERS: Mapping[str, Callable[..., Any]] = {
    "amount": amount,
    "are_plain": are_plain,
    "are_rows": are_rows,
    "canonical": canonical_text,
    "change": change_parts,
    "clock": clock_time,
    "editable": editable,
    "in_short": in_short,
    "is_said_whole": is_said_whole,
    "key": key_shown,
    "lasting": lasting,
    "lines": lines,
    "moment": _now(moment_words),
    "pretty": pretty,
    "prose": _now(prose),
    "scalar": _now(scalar),
    "since": _now(since),
}
GLOBALS: Mapping[str, Callable[..., Any]] = {
    "arranged": arranged,
    "counted": counted,
    "days_svg": days_svg,
    "headline": headline,
    "hindrance": hindrance,
    "leading": leading,
    "legend_svg": legend_svg,
    "link": link,
    "parts_shown": parts_shown,
    "role_shown": role_shown,
    "role_svg": role_svg,
    "timeline_svg": timeline_svg,
    "today": _today,
}
