"""The statements of `queries.sql` by name, read once. No SQL is written anywhere else in this package."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"^--.*\n?", re.MULTILINE)


def read_queries(text: str) -> Mapping[str, str]:
    """Return the statements of a query file by name, without their comments."""
    parts = _NAME.split(text)[1:]
    statements = (_COMMENT.sub("", body).strip() for body in parts[1::2])
    return MappingProxyType(dict(zip(parts[::2], statements, strict=True)))


SQL = read_queries((Path(__file__).parent / "queries.sql").read_text("utf-8"))
