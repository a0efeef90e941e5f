"""Files with an audit record: how each form is written, and how one is checked where it lies, a line at a time.

Called by the command line. The three forms are looked up here and nowhere else.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO

from milepost.audit import csv_form, html_form
from milepost.audit.checking import Checked, LineCheck
from milepost.audit.lines import Line
from milepost.errors import AuditAltered, AuditIncomplete

LINE_MAX = 64 * 1024 * 1024
"""Bytes of one line of a file that are read; a longer one is none of ours."""

Lines = Callable[[], Iterator[Line]]


@dataclass(frozen=True, slots=True)
class Form:
    """One shape of the file: how it begins, how it is written, how a line is found in it."""

    begins: bytes
    rendered: Callable[[Lines], Iterator[str]]
    line_text: Callable[[str], str | None]


def _rendered_jsonl(lines: Lines) -> Iterator[str]:
    return (f"{line.text}\n" for line in lines())


FORMS = {
    "jsonl": Form(b'{"line":', _rendered_jsonl, lambda physical: physical.removesuffix("\n")),
    "csv": Form(csv_form.MARK.encode() + b'"line",', csv_form.rendered, csv_form.line_text),
    "html": Form(b"<!doctype html>", html_form.rendered, html_form.line_text),
}


# ── writing ─────────────────────────────────────────────────────────────────────────────────────────


def write_record(lines: Iterator[Line], form: Form, out: BinaryIO) -> None:
    """Write a record in one of its forms. What is written is read once from the store, whatever the form.

    Crash: part of a file, which a check refuses as broken off.
    """
    with tempfile.TemporaryFile() as spool:
        for line in lines:
            spool.write(line.text.encode("ascii") + b"\n")
        for text in form.rendered(lambda: _spooled(spool)):
            out.write(text.encode("utf-8"))


def _spooled(spool: BinaryIO) -> Iterator[Line]:
    """Read the lines again from the beginning; each reading has a place of its own."""
    place = 0
    while True:
        spool.seek(place)
        text = spool.readline()
        if not text:
            return
        place = spool.tell()
        yield read_line(text.decode("ascii").removesuffix("\n"))


# ── checking ────────────────────────────────────────────────────────────────────────────────────────


def check_file(path: Path, seal_key: bytes | None) -> Checked:
    """Prove a file without its store. Raises: AuditAltered, AuditIncomplete, AuditUnproven, naming the line.

    Without the run's seal key what needs it is not judged; `missing_key` of what is returned says so.
    """
    form = _form_of(path)
    check = LineCheck(str(path), seal_key)
    for number, physical in _physical(path):
        if not physical.endswith("\n") and not check.is_ended:
            raise AuditIncomplete(file=path, line=number, what="a line", reason="it breaks off before its end")
        text = _line_text(form, path, number, physical)
        if text is not None and check.is_ended:
            raise AuditAltered(file=path, line=number, what="a line", reason="it stands behind the end")
        if text is not None:
            check.take(number, text)
    checked = check.end()
    _check_rest(path, form)
    return checked


def _form_of(path: Path) -> Form:
    with path.open("rb") as file:
        begin = file.read(64)
    found = next((form for form in FORMS.values() if begin.startswith(form.begins)), None)
    if found is None:
        raise AuditAltered(file=path, line=1, what="the file", reason="it does not begin like an audit record")
    return found


def _physical(path: Path) -> Iterator[tuple[int, str]]:
    with path.open("rb") as file:
        for number, data in enumerate(iter(lambda: file.readline(LINE_MAX), b""), 1):
            if len(data) == LINE_MAX:
                raise AuditAltered(file=path, line=number, what="a line", reason="it is longer than any of ours")
            try:
                yield number, data.decode("utf-8")
            except UnicodeDecodeError as error:
                reason = f"it is not UTF-8: {error.reason}"
                raise AuditAltered(file=path, line=number, what="a line", reason=reason) from error


def _line_text(form: Form, path: Path, number: int, physical: str) -> str | None:
    try:
        return form.line_text(physical)
    except ValueError as error:
        raise AuditAltered(file=path, line=number, what="a line", reason=str(error)) from error


def _check_rest(path: Path, form: Form) -> None:
    """Write the whole file again from its lines, which hold, and compare: nothing people read may be anybody else's."""
    again = form.rendered(lambda: _lines_of(path, form))
    for number, (written, found) in enumerate(zip_longest(again, (text for _, text in _physical(path))), 1):
        if written is not None and (found is None or (written != found and written.startswith(found))):
            reason = "the file breaks off before its end"
            raise AuditIncomplete(file=path, line=number, what="what people read", reason=reason)
        if written != found:
            reason = "it is not what the sealed lines say" if written is not None else "it stands behind the end"
            raise AuditAltered(file=path, line=number, what="what people read", reason=reason)


def _lines_of(path: Path, form: Form) -> Iterator[Line]:
    for number, physical in _physical(path):
        text = _line_text(form, path, number, physical)
        if text is not None:
            yield read_line(text)


def read_line(text: str) -> Line:
    """Read a line that was written here or has been checked."""
    content = json.loads(text)
    del content["proof"]
    return Line(content, text)
