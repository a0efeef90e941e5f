"""The audit record as a page to print: a summary, people, effects, steps, stops, and the whole journal. Pure.

No script, nothing from elsewhere; text from the run is inert. Every row of the journal carries its line, from which
the whole page can be written again. Each section reads the lines once more, so that a long run takes little memory.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator
from importlib import resources
from itertools import chain

from milepost.audit.account import Account, record_of
from milepost.audit.contents import heading_of, time_of
from milepost.audit.html_sections import SECTIONS, facts_of
from milepost.audit.lines import Line
from milepost.audit.plain import escaped

_DATA = re.compile("data-line='([^']*)'>")
_SEALED = '<tr class="sealed" '


def rendered(lines: Callable[[], Iterator[Line]]) -> Iterator[str]:
    """Yield the file a line at a time."""
    for text in _page(lines):
        yield f"{text}\n"


def line_text(physical: str) -> str | None:
    """Return the line that a row of the journal holds, None for any other line of the page."""
    if not physical.startswith(_SEALED):
        return None
    found = _DATA.search(physical)
    return html.unescape(found[1]) if found else None


def _page(lines: Callable[[], Iterator[Line]]) -> Iterator[str]:
    heading = heading_of(next(lines()).content)
    yield from _top(f"Run {heading.run_id}, audit record")
    yield from facts_of(heading, _account(lines()))
    for section in SECTIONS:
        yield f"<section><h2>{section.title}</h2>"
        yield from _table(section.columns, section.rows(lines()), nothing=section.nothing)
        yield "</section>"
    yield "<section><h2>Everything recorded, in order</h2>"
    yield from _journal(lines())
    yield "</section>"
    yield "</main></body></html>"


def _account(lines: Iterable[Line]) -> Account:
    account = Account()
    for line in lines:
        record = record_of(line)
        if record is not None:
            account.take(record)
    return account


def _top(title: str) -> Iterator[str]:
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    yield '<meta name="viewport" content="width=device-width"><meta name="generator" content="milepost audit">'
    yield f"<title>{escaped(title)}</title>"
    yield "<style>"
    yield from resources.files("milepost.audit").joinpath("page.css").read_text(encoding="utf-8").splitlines()
    yield "</style></head><body><main>"


def _table(columns: Iterable[str], rows: Iterator[Iterable[object]], *, nothing: str) -> Iterator[str]:
    """Yield a table a row at a time, or a sentence when there are no rows."""
    first = next(rows, None)
    if first is None:
        yield f"<p>{escaped(nothing)}</p>"
        return
    yield "<table>" + _header(columns)
    yield from map(_row, chain((first,), rows))
    yield "</table>"


def _header(columns: Iterable[str]) -> str:
    return "<thead><tr>" + "".join(f"<th>{escaped(column)}</th>" for column in columns) + "</tr></thead>"


def _row(cells: Iterable[object]) -> str:
    return "<tr>" + "".join(f"<td>{escaped(cell)}</td>" for cell in cells) + "</tr>"


def _journal(lines: Iterable[Line]) -> Iterator[str]:
    yield '<table class="journal">' + _header(("", "when (UTC)", "what", "where", "what it says", "seal"))
    yield from map(_sealed_row, lines)
    yield "</table>"


def _sealed_row(line: Line) -> str:
    shown = line.content
    what = shown.get("kind") or shown["is"]
    seal = str(shown.get("seal") or "")[:16]
    when = time_of(shown).removesuffix(" UTC")
    cells = (shown.get("seq", ""), when, what, shown.get("path", ""), shown["says"], seal)
    carried = f"<pre>{escaped(shown['text'])}</pre>" if "text" in shown else ""
    tds = "".join(f"<td>{escaped(cell)}{carried if number == 4 else ''}</td>" for number, cell in enumerate(cells))
    return f"{_SEALED}data-line='{html.escape(line.text)}'>{tds}</tr>".replace("&quot;", '"')
