"""Changes a source the way the world outside would: one more byte in a file, another value in a row.

Only inside the world's own folder: what belongs to the user is never touched. Says why when it cannot.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any


def change(descriptor: dict[str, Any], world: Path) -> str:
    """Change what a descriptor names; return why not, '' when it is changed."""
    kind = str(descriptor.get("kind"))
    place = descriptor.get("database") if kind == "sql" else descriptor.get("path")
    if not isinstance(place, str):
        return f"a drill cannot change a source of kind {kind}"
    path = Path(place.replace("$WORLD", str(world)))
    path = path if path.is_absolute() else world / path
    if not path.resolve().is_relative_to(world.resolve()):
        return f"{path} is outside the drill's world; let setup= put a copy there"
    if kind == "sql":
        return _row(path, str(descriptor["query"]), descriptor.get("parameters") or [])
    return _content(path)


def _content(path: Path) -> str:
    """Add a byte to a file, or to the first file of a folder."""
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    if not files or not files[0].exists():
        return f"there is nothing at {path}"
    for file in files:
        with file.open("ab") as content:
            content.write(b"\n")
    return ""


def _row(path: Path, query: str, parameters: list[Any]) -> str:
    """Change one value after another until the query answers otherwise."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        before = db.execute(query, parameters).fetchall()
        for statement in _statements(db):
            db.execute("SAVEPOINT drill")
            try:
                db.execute(statement)
                if db.execute(query, parameters).fetchall() != before:
                    db.execute("RELEASE drill")
                    return ""
            except sqlite3.Error:
                pass  # this column takes no such value: the next one may
            db.execute("ROLLBACK TO drill")
            db.execute("RELEASE drill")
    return f"no value in {path} changes the answer of the query"


def _statements(db: sqlite3.Connection) -> Iterator[str]:
    for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        for column in db.execute(f'PRAGMA table_info("{table}")').fetchall():
            yield f'UPDATE "{table}" SET "{column[1]}" = "{column[1]}" || \'0\''
        yield f'DELETE FROM "{table}"'
