"""Writes to the terminal: results to stdout, all else to stderr. Whatever comes from a run is shown inert.

Names, errors and model text reach a terminal only through `inert`; rich gets `Text`, never markup, and is imported
only when there is a terminal to draw a table on. Called by every command; holds no rule.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any

STYLES = {
    "done": "green",
    "verified": "green",
    "applied": "green",
    "ok": "green",
    "running": "cyan",
    "in_progress": "cyan",
    "waiting": "yellow",
    "due": "yellow",
    "asking": "yellow",
    "answered": "yellow",
    "ask": "yellow",
    "wait": "yellow",
    "open": "yellow",
    "died": "red",
    "failed": "red",
    "refuse": "red",
    "refused": "red",
    "rejected": "red",
}
"""Colours of status words, on a terminal only."""


def inert(text: object, *, lines: bool = False) -> str:
    """Show every character that could move a cursor, hide or reorder text as an escape; `lines` keeps line breaks."""
    shown = str(text)
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() or (lines and c == "\n") else _escaped(c) for c in shown)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def say(text: object = "", *, lines: bool = False) -> None:
    """Write one line of a result to stdout."""
    sys.stdout.write(inert(text, lines=lines) + "\n")


def note(text: object, *, lines: bool = False) -> None:
    """Write one line about what happens to stderr; that nobody reads it any more stops no run."""
    with suppress(OSError):
        sys.stderr.write(inert(text, lines=lines) + "\n")
        sys.stderr.flush()


def emit(value: Any, *, one_line: bool = False) -> None:
    """Write a JSON value to stdout; everything but ASCII is escaped, so that it is inert too."""
    sys.stdout.write(json.dumps(value, indent=None if one_line else 2, default=str) + "\n")


def table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a table to stdout: fitted to a terminal, else one line a row, columns two blanks apart."""
    cells = [[inert(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _drawn(headers, cells)
        return
    lines = [[header.upper() for header in headers], *cells]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headers))]
    for line in lines:
        say("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _drawn(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for header in headers:
        is_id = header in ("run", "question")  # to be copied whole
        drawn.add_column(Text(header.upper()), overflow="fold", no_wrap=is_id)
    for row in rows:
        drawn.add_row(*(Text(cell, style=STYLES.get(cell.strip(), "")) for cell in row))
    Console().print(drawn)


@contextmanager
def only_results_on_stdout() -> Iterator[None]:
    """Send what a user's code and its children print to stderr, so that stdout stays parseable."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def is_terminal(*, plain: bool) -> bool:
    """Say whether to draw a live view: stderr is a terminal and nobody asked for plain lines."""
    return not plain and sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
