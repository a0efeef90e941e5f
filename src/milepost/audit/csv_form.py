"""The audit record as a table: one row a line, what people read in columns, the line itself in the last. Pure.

A cell can start no formula, wherever a spreadsheet may cut it; what is put before it for that comes off again.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator

from milepost.audit.lines import Line
from milepost.audit.plain import plain

COLUMNS = ("line", "is", "seq", "at", "kind", "path", "who", "says", "key", "ref", "digest", "seal", "sealed")
"""`sealed` holds the whole line as JSON; the others show what is in it."""
MARK = "\ufeff"
"""Begins the file: without it a spreadsheet does not know that this is UTF-8."""
_STARTS = re.compile("(^|[,;\t|])(?=['=+\\-@\t\r\uff1d\uff0b\uff0d\uff20])")
"""Where a formula could start: in front of a cell, or behind what another spreadsheet takes for the end of one."""
_SEALED = ',"{""line"":'
"""Begins the last cell of a row; no text inside a cell can look like it, for there quotes are doubled."""
_STARTED = re.compile("(^|[,;\t|])'(?=['=+\\-@\t\r\uff1d\uff0b\uff0d\uff20])")


def rendered(lines: Callable[[], Iterator[Line]]) -> Iterator[str]:
    """Yield the file a line at a time."""
    yield _first()
    for line in lines():
        yield _row([*(_shown(line.content.get(name)) for name in COLUMNS[:-1]), harmless(line.text)])


def _shown(value: object) -> str:
    return "" if value is None else harmless(plain(str(value)))


def line_text(physical: str) -> str | None:
    """Return the line that a row holds, None for the row of names. Raises: ValueError when it is no row of ours."""
    _, found, rest = physical.rpartition(_SEALED)
    if found:
        return as_it_was('{"line":' + rest.removesuffix('"\r\n').replace('""', '"'))
    if physical != _first():
        raise ValueError("it is no row of an audit record")
    return None


def harmless(cell: str) -> str:
    """Put an apostrophe where a formula could start."""
    return _STARTS.sub(r"\1'", cell)


def as_it_was(cell: str) -> str:
    """Take the apostrophes off again."""
    return _STARTED.sub(r"\1", cell)


def _first() -> str:
    return MARK + _row(COLUMNS)


def _row(cells: Iterable[str]) -> str:
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL).writerow(cells)
    return written.getvalue()
