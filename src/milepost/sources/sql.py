"""The answer of a query on an SQLite database as a source: what a step sees of it, not the bytes of its file.

The database is opened read-only and only reading is authorised. SQLite itself may leave the `-wal` and `-shm` files
of a WAL database beside it, as every reader does. The order of rows is the query's: say `order by`.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import sqlite3
import struct
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import PurePath
from typing import Any, TypeAlias
from urllib.parse import quote

from milepost.errors import BadOption, MilepostError
from milepost.records.shown import readable
from milepost.regular import kind_at
from milepost.sources.naming import cannot_tell, check_path, name_of, path_fields, path_of
from milepost.sources.observation import Descriptor, Items, Observation, absent, content_fingerprint

Parameter: TypeAlias = bool | int | float | str | None

BUSY_WAIT_S = 5.0  # seconds to wait for a writer that locks the database
INSTRUCTIONS_MAX = 10_000_000_000  # of SQLite's machine, some minutes; a recursive query without end stops here
INSTRUCTIONS_STEP = 1_000_000  # between two looks at that bound
INTEGER_BITS = 64  # SQLite's integers

_READS = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/|\()*(?:select|with|values)\b", re.IGNORECASE | re.DOTALL)
_UNREADABLE = ("syntax error", "unrecognized token", "incomplete input", "one statement")
_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})
# What full-text tables and the table-valued pragma functions ask; none of them changes anything.
_PRAGMAS = frozenset({"data_version", "table_info", "table_xinfo", "table_list", "index_list", "index_info"})


@dataclass(frozen=True, slots=True)
class Sql:
    """The rows a query gives on an SQLite database, in the query's order. The first column labels a row in diffs.

    The query and its parameters are recorded as they are.
    """

    database: str | PurePath
    query: str
    parameters: Sequence[Parameter] = ()

    def __post_init__(self) -> None:
        check_path("Sql(database, …)", self.database)
        _check_query(self.query)
        for number, value in enumerate(self.parameters, start=1):
            if not _is_parameter(value):
                reason = f"parameter {number}: expected None, bool, int, float or str, found {type(value).__name__}"
                raise BadOption(where="Sql(parameters=…)", reason=f"{reason}, or a value SQLite cannot hold")

    def descriptor(self) -> Descriptor:
        """Return the source as data."""
        database = path_fields("database", self.database)
        return {"kind": "sql", **database, "query": self.query, "parameters": list(self.parameters)}


def observe_sql(descriptor: Descriptor, seal_key: bytes | None) -> Observation:
    """Run the query of a descriptor and look at its rows.

    Raises:
        BadOption: the query does more than read.
        SourceUnavailable: the database is locked, damaged or fits the query no more.
        OSError: the path cannot be looked at.
    """
    path = path_of(descriptor, "database")
    kind = kind_at(path)
    if kind is None:
        return absent(descriptor)
    if kind != "file":
        raise cannot_tell(descriptor, f"is a {kind}, expected a database file")
    try:
        with closing(_open(path)) as connection:
            return _read(connection, descriptor, seal_key)
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise _translated(error, descriptor) from error


def _check_query(query: str) -> None:
    where = "Sql(query=…)"
    if not _READS.match(query):
        raise BadOption(where=where, reason=f"expected a SELECT, WITH or VALUES query, found {query[:60]!r}")
    with closing(sqlite3.connect(":memory:")) as empty:
        try:
            empty.execute(f"explain {query}")
        except (sqlite3.Error, sqlite3.Warning, UnicodeEncodeError) as error:
            # Everything else (no such table, no value for ?) is no fault of the query's text.
            if isinstance(error, UnicodeEncodeError) or any(sign in str(error) for sign in _UNREADABLE):
                raise BadOption(where=where, reason=str(error)) from error


def _is_parameter(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return value.bit_length() < INTEGER_BITS
    return value is None or (isinstance(value, str) and readable(value) == value)


def _open(path: str) -> sqlite3.Connection:
    uri = f"file://{quote(os.fsencode(os.path.abspath(path)))}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, timeout=BUSY_WAIT_S, isolation_level=None)
    connection.execute("pragma query_only = on")
    connection.set_authorizer(_authorise)
    connection.set_progress_handler(_out_of_instructions(), INSTRUCTIONS_STEP)
    # Text that is not UTF-8 is content like any other, and must neither crash nor look like a blob.
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    return connection


def _authorise(action: int, first: str | None, _second: str | None, _database: str | None, _trigger: str | None) -> int:
    if action in _ALLOWED:
        return sqlite3.SQLITE_OK
    asks = action == sqlite3.SQLITE_PRAGMA and first in _PRAGMAS
    # A virtual table declares itself this way, in memory; a statement could not (`writable_schema` is off).
    declares = action == sqlite3.SQLITE_UPDATE and first == "sqlite_master"
    return sqlite3.SQLITE_OK if asks or declares else sqlite3.SQLITE_DENY


def _out_of_instructions() -> Callable[[], bool]:
    looks = count(1)
    return lambda: next(looks) * INSTRUCTIONS_STEP > INSTRUCTIONS_MAX


def _read(connection: sqlite3.Connection, descriptor: Descriptor, seal_key: bytes | None) -> Observation:
    items, whole, rows = Items(seal_key), hashlib.sha256(), 0
    for row in connection.execute(descriptor["query"], descriptor["parameters"]):
        content = _encoded(row)
        whole.update(len(content).to_bytes(8, "big") + content)
        items.add(_label(row[0]), content, " | ".join(_label(value) for value in row))
        rows += 1
    return Observation(
        descriptor, content_fingerprint("sql", whole.digest(), seal_key), rows, items.all(), items.texts()
    )


def _encoded(row: tuple[Any, ...]) -> bytes:
    """Return one row as bytes: each value by its class, its length and itself, so that 1, 1.0 and '1' differ."""
    parts = []
    for value in row:
        mark, data = _marked(value)
        parts.append(mark + len(data).to_bytes(8, "big") + data)
    return b"".join(parts)


def _marked(value: int | float | str | bytes | None) -> tuple[bytes, bytes]:
    if value is None:
        return b"n", b""
    if isinstance(value, int):
        return b"i", str(value).encode()
    if isinstance(value, float):
        return b"r", struct.pack(">d", value)
    if isinstance(value, str):
        return b"t", value.encode("utf-8", "surrogateescape")
    return b"b", value


def _label(value: int | float | str | bytes | None) -> str:
    if isinstance(value, bytes):
        return value[:20].hex()
    return "NULL" if value is None else str(value)


def _translated(error: Exception, descriptor: Descriptor) -> MilepostError:
    code = getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_AUTH or "one statement" in str(error):
        return BadOption(
            where=f"Sql, {name_of(descriptor)}", reason="the query does more than read; a source only reads"
        )
    if code == sqlite3.SQLITE_INTERRUPT:
        return cannot_tell(descriptor, f"the query ran past {INSTRUCTIONS_MAX:,} steps of SQLite's machine")
    return cannot_tell(descriptor, str(error))
