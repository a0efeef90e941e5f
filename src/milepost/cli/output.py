"""Writes to the terminal: results to stdout, all else to stderr. Whatever comes from a run is shown inert.

Names, errors and model text reach a terminal only through `inert`; rich gets `Text`, never markup, and is imported
only when there is a terminal to draw a table on. Called by every command; holds no rule.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Any

from milepost.errors import UnavailableError
from milepost.records.shown import inert

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
WIDTH_MAX = 44
"""Characters a column of a plain table is padded to; a longer cell moves its own line only."""
UNWRITABLE = (OSError, ValueError, AttributeError)
"""What writing raises to a stream that is full, closed, or None."""


def say(text: object = "", *, lines: bool = False) -> None:
    """Write one line of a result to stdout."""
    _out(inert(text, lines=lines) + "\n")


def note(text: object, *, lines: bool = False) -> None:
    """Write one line about what happens to stderr; that it cannot be written stops no run."""
    with suppress(*UNWRITABLE):
        sys.stderr.write(inert(text, lines=lines) + "\n")
        sys.stderr.flush()


def emit(value: Any, *, one_line: bool = False) -> None:
    """Write a JSON value to stdout; everything but ASCII is escaped, so that it is inert too."""
    _out(json.dumps(value, indent=None if one_line else 2, default=str) + "\n")


def say_result(result: Any, about: Mapping[str, object], *, as_json: bool) -> None:
    """Write what a run returned: a text as it is, else as JSON, nothing for None; with `as_json` beside its run."""
    if as_json:
        emit({**about, "status": "done", "result": result})
    elif isinstance(result, str):
        say(result, lines=True)
    elif result is not None:
        emit(result)


def say_no_runs(why: str, *, as_json: bool) -> int:
    """Say that there is no run to tell of, and why; return the exit status."""
    if as_json:
        emit({"runs": []})
    else:
        note(why)
    return 0


def _out(text: str) -> None:
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        raise
    except UNWRITABLE as error:
        raise unwritten(error) from None


def unwritten(error: Exception) -> UnavailableError:
    """Return the error of a result that stdout does not take."""
    return UnavailableError(
        reason=f"the result cannot be written to stdout: {error}",
        hint="What is recorded stands; give stdout somewhere to go and type it again (`resume` prints a done result).",
    )


def table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a table to stdout: fitted to a terminal, else one line a row, columns two blanks apart."""
    cells = [[inert(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _drawn(headers, cells)
        return
    lines = [[header.upper() for header in headers], *cells]
    widths = [min(max(len(line[column]) for line in lines), WIDTH_MAX) for column in range(len(headers))]
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
    """Send what a user's code and its children print to stderr, so that stdout stays parseable.

    Streams that this code closed, or set to None, are open again afterwards.
    """
    sys.stdout.flush()
    kept = os.dup(1), os.dup(2)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept[0], 1)
        if not _is_open(2):
            os.dup2(kept[1], 2)
        for number in kept:
            os.close(number)
        usable_streams()


def open_streams() -> None:
    """Make stdin, stdout and stderr usable in a process that was started with some of them closed.

    Else the next file that is opened, a store perhaps, would be what somebody's print goes to. A result cannot be
    written to a closed stdout and says so; what is said to a closed stderr is dropped.
    """
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        if not _is_open(number):
            os.open(os.devnull, mode)  # the lowest free number is this one
    usable_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def usable_streams() -> None:
    """Put a stream in the place of stdout or stderr where there is none any more."""
    for name, number in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name)
        if stream is None or stream.closed:
            raw = FileIO(number, "w", closefd=False)
            fresh = TextIOWrapper(BufferedWriter(raw), "utf-8", "backslashreplace", line_buffering=number == 2)
            setattr(sys, name, fresh)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def is_terminal(*, plain: bool) -> bool:
    """Say whether to draw a live view: stderr is a terminal and nobody asked for plain lines."""
    return not plain and sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
