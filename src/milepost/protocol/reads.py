"""What code of a shadow run may reach although it is no effect: `reads=[…]` of a task or a step, as data. Pure.

A host, a path, or a program; whether a call fits one of them is the guard's business, in the runtime.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import Literal, NamedTuple

from milepost.errors import BadOption

PROGRAM = "program:"
"""Begins what names a program by its file name: `program:pdftotext`."""


class Read(NamedTuple):
    """One thing that is only read. A host has a port or any; a path stands for what is below it, too."""

    kind: Literal["host", "path", "program"]
    name: str  # of a host: its name or address, `*.` before it for those below
    port: int | None = None

    def __str__(self) -> str:
        before = PROGRAM if self.kind == "program" else ""
        return f"{before}{self.name}{'' if self.port is None else f':{self.port}'}"


def declared_reads(where: str, given: Iterable[object]) -> tuple[Read, ...]:
    """Read `reads=`: `"api.example.com"`, `"localhost:8080"`, `"program:git"`, a path. Raises: BadOption."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise BadOption(where=f"{where}, reads=", reason=f"expected a list, found {given!r}")
    return tuple(_read(where, entry) for entry in given)


def _read(where: str, entry: object) -> Read:
    if isinstance(entry, PurePath):
        return Read("path", str(entry))
    if not isinstance(entry, str) or not entry.strip() or "://" in entry:
        raise BadOption(
            where=f"{where}, reads=",
            reason=f"expected HOST, HOST:PORT, a path or {PROGRAM}NAME, found {entry!r}",
        )
    if entry.startswith(PROGRAM):
        return Read("program", entry.removeprefix(PROGRAM))
    return Read("path", entry) if "/" in entry or entry.startswith(("~", ".")) else _host(where, entry)


def _host(where: str, entry: str) -> Read:
    """Read HOST, HOST:PORT, ADDRESS or [ADDRESS]:PORT."""
    name, colon, port = entry.rpartition(":")
    if not colon or (":" in name and not name.endswith("]")):
        return Read("host", entry.strip("[]").lower())
    if not port.isdigit():
        raise BadOption(where=f"{where}, reads=", reason=f"expected a number after the colon, found {entry!r}")
    return Read("host", name.strip("[]").lower(), int(port))
