"""The statements of `queries.sql` by name, read once. No SQL is written anywhere else in this package."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"^--.*\n?", re.MULTILINE)
_ROW = re.compile(r"(?<=VALUES )(\([?, ]+\))")


def read_queries(text: str) -> Mapping[str, str]:
    """Return the statements of a query file by name, without their comments."""
    parts = _NAME.split(text)[1:]
    statements = (_COMMENT.sub("", body).strip() for body in parts[1::2])
    return MappingProxyType(dict(zip(parts[::2], statements, strict=True)))


SQL = read_queries((Path(__file__).parent / "queries.sql").read_text("utf-8"))

ROWS_MAX = 128
"""Rows one statement takes at most; SQLite lets it have 32,766 values."""


class ManyRows:
    """A statement with VALUES of one row, written for many at once: each statement takes a power of two of them.

    `alone` is the statement for one row where that is another.
    """

    def __init__(self, name: str, alone: str | None = None) -> None:
        sizes = [1 << power for power in range(ROWS_MAX.bit_length())]
        before, row, after = _ROW.split(SQL[name])
        self._texts = {size: f"{before}{', '.join([row] * size)}{after}" for size in sizes}
        if alone is not None:
            self._texts[1] = SQL[alone]
        self._width = self._texts[1].count("?")

    def execute(self, connection: sqlite3.Connection, values: list[object]) -> int:
        """Change as many rows as there are values for, one row's after the other; return how many were changed."""
        changed = 0
        while values:
            size = min(ROWS_MAX, 1 << (len(values) // self._width).bit_length() - 1)
            end = size * self._width
            changed += connection.execute(self._texts[size], values[:end]).rowcount
            values = values[end:]
        return changed
