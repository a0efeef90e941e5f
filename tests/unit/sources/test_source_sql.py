"""A query's answer is a source; asking it changes nothing and never takes trouble for absence."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from milepost.errors import BadOption, SourceUnavailable
from milepost.sources import Observation, Sql, changes, key_of, observe, sql

ALL = "select * from orders order by id"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "orders #1?.sqlite"
    change(path, "create table orders (id text, amount)", "insert into orders values ('INV-6', 1), ('INV-7', 2)")
    return path


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def look(path: Path, query: str = ALL, *parameters: sql.Parameter) -> Observation:
    return observe(Sql(path, query, parameters).descriptor(), seal_key=b"key")


def test_changed_added_and_removed_rows_are_named_by_their_first_column(database: Path) -> None:
    before = look(database)
    change(database, "update orders set amount = 3 where id = 'INV-7'", "insert into orders values ('INV-8', 1)")
    change(database, "delete from orders where id = 'INV-6'")
    assert changes(before, look(database)) == ["row INV-7 changed", "row INV-8 was added", "row INV-6 was removed"]


def test_a_change_says_what_the_row_held(database: Path) -> None:
    source = Sql(database, ALL).descriptor()
    before = observe(source, seal_key=None)
    change(database, "update orders set amount = 3 where id = 'INV-7'")
    assert changes(before, observe(source, seal_key=None)) == ['row INV-7: "INV-7 | 2" → "INV-7 | 3"']


def test_rows_that_are_not_asked_for_do_not_count(database: Path) -> None:
    before = look(database, "select amount from orders where id = ?", "INV-7")
    change(database, "delete from orders where id = 'INV-6'", "vacuum")
    assert look(database, "select amount from orders where id = ?", "INV-7") == before


@pytest.mark.parametrize("pair", [("1", "1.0"), ("1", "'1'"), ("'a'", "x'61'"), ("null", "''"), ("0.0", "-0.0")])
def test_equal_looking_values_of_two_classes_differ(database: Path, pair: tuple[str, str]) -> None:
    one, other = (look(database, f"select {value}") for value in pair)
    assert one.fingerprint != other.fingerprint


def test_a_value_never_flows_into_the_next_column(database: Path) -> None:
    assert look(database, "select 'ab', 'c'").fingerprint != look(database, "select 'a', 'bc'").fingerprint


def test_text_that_is_not_utf8_is_content(database: Path) -> None:
    seen = look(database, "select cast(x'ff41' as text)")
    assert seen.fingerprint != look(database, "select x'ff41'").fingerprint
    json.dumps(seen.to_json(), ensure_ascii=False).encode("utf-8")


def test_wal_database_with_a_writer_is_read_as_committed(database: Path) -> None:
    """The rows of a WAL database may stand in its -wal file only; its main file does not change."""
    with closing(sqlite3.connect(database, isolation_level=None)) as writer:
        assert writer.execute("pragma journal_mode = wal").fetchone() == ("wal",)
        before, data = look(database), database.read_bytes()
        writer.execute("insert into orders values ('INV-8', 1)")
        assert changes(before, look(database)) == ["row INV-8 was added"]
        assert database.read_bytes() == data


def test_absent_database_is_absent_and_not_created(tmp_path: Path) -> None:
    assert look(tmp_path / "none.sqlite").fingerprint is None
    assert not list(tmp_path.iterdir())


@pytest.fixture
def locked(database: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sql, "BUSY_WAIT_S", 0.0)
    with closing(sqlite3.connect(database, isolation_level=None)) as writer:
        writer.execute("begin exclusive")
        yield database


def test_locked_database_cannot_be_told(locked: Path) -> None:
    with pytest.raises(SourceUnavailable, match="locked"):
        look(locked)


def test_what_is_no_database_or_lacks_the_table_cannot_be_told(database: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a database, but long enough to be read as one" * 50)
    for path, query, reason in (
        (tmp_path / "text", ALL, "not a database"),
        (tmp_path, ALL, "is a folder, expected a database file"),
        (database, "select * from missing", "no such table"),
    ):
        with pytest.raises(SourceUnavailable, match=reason):
            look(path, query)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("delete from orders", "expected a SELECT"),
        ("pragma user_version", "expected a SELECT"),
        ("attach 'x' as y", "expected a SELECT"),
        ("", "expected a SELECT"),
        ("selectx", "expected a SELECT"),
        ("select from where", "syntax error"),
        ("select 1; delete from orders", "one statement"),
        ("select '\udc80'", "surrogates"),
    ],
)
def test_query_that_is_none_is_refused_at_declaration(query: str, reason: str) -> None:
    with pytest.raises(BadOption, match=reason):
        Sql("orders.sqlite", query)


@pytest.mark.parametrize("query", ["-- why\nSELECT 1", "/* a\n*/ with x as (select 1) select * from x", "values (1)"])
def test_comments_and_other_ways_to_read_are_fine(database: Path, query: str) -> None:
    assert look(database, query).size == 1


@pytest.mark.parametrize(
    "query",
    [
        "with x as (select 1) delete from orders",
        "with x as (select 1) insert into orders select 'a', 1",
        "with x as (select 1) update orders set amount = 0",
        "select * from orders; drop table orders",
        "select writefile('x', 'y')",
        "select load_extension('x')",
        "with x as (select 1) update sqlite_master set sql = ''",
    ],
)
def test_query_that_writes_is_refused_and_changes_nothing(database: Path, query: str) -> None:
    """The declaration cannot see every trick; SQLite's own authorizer does."""
    data = database.read_bytes()
    with pytest.raises((BadOption, SourceUnavailable)):
        look(database, query)
    assert database.read_bytes() == data


def test_query_without_end_is_stopped(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "INSTRUCTIONS_MAX", 2_000_000)
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
    with pytest.raises(SourceUnavailable, match="ran past 2,000,000 steps"):
        look(database, endless)


def test_full_text_tables_and_schema_questions_can_be_read(database: Path) -> None:
    change(database, "create virtual table notes using fts5(body)", "insert into notes values ('late delivery')")
    assert look(database, "select body from notes where notes match 'late'").size == 1
    assert look(database, "select name from pragma_table_info('orders')").size == 2


@pytest.mark.parametrize("value", [float("nan"), 2**63, b"x", object(), "\ud800"])
def test_parameter_that_data_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(BadOption, match="parameter 1"):
        Sql("orders.sqlite", "select ?", [value])  # type: ignore[list-item]


def test_wrong_number_of_parameters_cannot_be_told(database: Path) -> None:
    with pytest.raises(SourceUnavailable, match="bindings"):
        look(database, "select ?")


def test_key_tells_queries_and_parameters_apart(database: Path) -> None:
    declared = [Sql(database, "select ?", [1]), Sql(database, "select ?", [2]), Sql(database, "select ? ", [1])]
    assert len({key_of(source.descriptor()) for source in declared}) == 3
