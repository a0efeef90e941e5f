"""schema.sql is the truth: the migrations lead to it, every statement of queries.sql fits it and is used."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from milepost.errors import StoreTooNew
from milepost.stores.sqlite import opening
from milepost.stores.sqlite.connection import connect_sqlite
from milepost.stores.sqlite.queries import SQL, read_queries
from milepost.stores.sqlite.store import SqliteStore

PACKAGE = Path(opening.__file__).parent


def empty() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None)


def shape(connection: sqlite3.Connection) -> list[tuple[str, ...]]:
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2")
    return [(*names, " ".join((sql or "").split()).replace(" ,", ",").replace(" )", ")")) for *names, sql in rows]


def test_migrations_lead_to_the_schema() -> None:
    with closing(empty()) as migrated, closing(empty()) as fresh:
        opening.migrate(migrated, "memory")
        fresh.executescript((PACKAGE / "schema.sql").read_text("utf-8"))
        assert shape(migrated) == shape(fresh)


def test_every_step_of_history_ends_at_the_same_schema() -> None:
    for number, *_ in opening.migrations():
        with closing(empty()) as old, closing(empty()) as fresh:
            opening.migrate(old, "memory", last=number)
            assert opening.schema_of(old, "memory") == number
            opening.migrate(old, "memory")
            opening.migrate(fresh, "memory")
            assert shape(old) == shape(fresh)


def test_migration_numbers_have_no_gap() -> None:
    numbers = [number for number, *_ in opening.migrations()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_migration_and_its_record_commit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that dies, or a script that fails, inside a migration leaves the schema of before."""
    broken = [*opening.migrations(), (99, "broken", "CREATE TABLE half (x);\nCREATE TABLE half (x);\n")]
    monkeypatch.setattr(opening, "migrations", lambda: broken)
    with closing(empty()) as connection:
        with pytest.raises(sqlite3.OperationalError, match="already exists"):
            opening.migrate(connection, "memory")
        connection.execute("ROLLBACK")
        assert opening.schema_of(connection, "memory") == broken[-2][0]
        assert not [row for row in shape(connection) if row[1] == "half"]


def test_answers_of_one_person_are_the_first_in_their_place(tmp_path: Path) -> None:
    """Answered before an upgrade, resumed after it: what stood stands, what came too late did."""
    with closing(empty()) as connection:
        opening.migrate(connection, "memory", last=2)
        connection.execute("PRAGMA foreign_keys = OFF")
        answer = "INSERT INTO answers (question_id, choice, by, at, note, accepted, seal) VALUES (?, ?, ?, ?, '', ?, ?)"
        connection.execute(answer, ("q1", "keep", "ada", "now", 1, b"s"))
        connection.execute(answer, ("q1", "stop", "bob", "later", 0, None))
        opening.migrate(connection, "memory")
        found = connection.execute("SELECT choice, by, place, seal, request, door, role FROM answers ORDER BY number")
        assert found.fetchall() == [("keep", "ada", 1, b"s", None, "", ""), ("stop", "bob", 0, None, None, "", "")]


def test_a_newer_schema_is_refused_and_nothing_changed(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    SqliteStore(path, create=True).close()
    with closing(connect_sqlite(str(path))) as connection:
        connection.execute(SQL["record_migration"], (opening.schema_known() + 1, "from_the_future"))
    before = path.read_bytes()
    with pytest.raises(StoreTooNew) as caught:
        SqliteStore(path, create=True)
    assert caught.value.facts["found"] == opening.schema_known() + 1
    assert path.read_bytes() == before


def test_every_statement_has_a_purpose_and_fits_the_schema() -> None:
    text = (PACKAGE / "queries.sql").read_text("utf-8")
    lines = text.splitlines()
    purposes = [lines[n + 1] for n, line in enumerate(lines) if line.startswith("-- name: ")]
    assert all(purpose.startswith("-- ") and purpose.endswith(".") for purpose in purposes)
    assert len(read_queries(text)) == len(purposes)
    with closing(empty()) as connection:
        opening.migrate(connection, "memory")
        for name, statement in SQL.items():
            values = _Anything() if ":" in statement else (None,) * statement.count("?")
            assert connection.execute(f"EXPLAIN {statement}", values).fetchall(), name


def test_every_statement_is_used() -> None:
    code = "".join(path.read_text("utf-8") for path in PACKAGE.glob("*.py"))
    # records and task_chain are chosen by name
    assert [name for name in SQL if f'"{name}"' not in code] == []


class _Anything(dict[str, None]):
    """NULL for every named placeholder."""

    def __missing__(self, name: str) -> None:
        return None
