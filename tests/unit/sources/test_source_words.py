"""What people read of sources: names and changes, short, on one line, safe for a terminal."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from milepost.sources import Descriptor, File, Folder, Observation, Sql, changes, key_of, name_of


def seen(kind: str, fingerprint: str | None, size: int, *items: tuple[str, str]) -> Observation:
    return Observation({"kind": kind, "path": "x"}, fingerprint, size, items)


def said(kind: str, *parts: str) -> Observation:
    """Return a look that kept what each part said; the part of `INV-7 | 3` has the label INV-7."""
    items = [(part.split(" | ")[0] if kind == "sql" else str(at), part) for at, part in enumerate(parts, start=1)]
    return replace(seen(kind, "/".join(parts), len(parts), *items), texts=parts)


def lines(text: str) -> Observation:
    return seen("file", text, len(text), *((str(number), line) for number, line in enumerate(text, start=1)))


@pytest.mark.parametrize(
    ("descriptor", "name"),
    [
        (File("orders.csv").descriptor(), "orders.csv"),
        (Folder("mail/").descriptor(), "mail/"),
        (Folder("mail", "*.eml").descriptor(), "mail/*.eml"),
        (Sql("o.sqlite", "select *\n  from o").descriptor(), "o.sqlite: select * from o"),
        (Sql("o.sqlite", "select " + "x" * 60).descriptor(), "o.sqlite: select " + "x" * 52 + "…"),
        ({"kind": "call", "name": "rates:today"}, "rates:today()"),
        ({"kind": "http", "url": "https://me:pw@host:8443/a?k=v#f"}, "GET https://host:8443/a?…"),
        (File("a\x1b[2J\nb").descriptor(), "a\\x1b[2J\\nb"),
    ],
)
def test_name_is_one_short_line(descriptor: Descriptor, name: str) -> None:
    assert name_of(descriptor) == name


def test_one_path_has_one_key_however_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record must find its source again from another spelling, or a change would be missed."""
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to("data")
    monkeypatch.chdir(tmp_path)
    spellings = ("data", "./data/", "data/../data", "link", str(tmp_path / "data"), Path("data"))
    keys = {key_of(declare(path).descriptor()) for path in spellings for declare in (File, Folder)}
    assert len(keys) == 1
    assert all(len(key) == 32 for key in keys)


def test_two_patterns_of_one_folder_are_two_sources() -> None:
    assert len({key_of(Folder("d", pattern).descriptor()) for pattern in ("**/*", "*.a", "*.b")}) == 3


def test_relative_path_stays_relative_in_the_descriptor() -> None:
    assert File("orders.csv").descriptor() == {"kind": "file", "path": "orders.csv"}
    assert not os.path.isabs(Folder(Path("mail")).descriptor()["path"])


def test_observation_survives_being_data() -> None:
    for observation in (seen("file", "f", 3, ("1", "abc")), seen("folder", None, 0), said("file", "a", "b")):
        assert Observation.from_json(observation.to_json()) == observation


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (lines("abc"), lines("abc"), []),
        (lines("abc"), lines("aXc"), ["line 2 changed"]),
        (lines("abc"), lines("Xabc"), ["line 1 was added"]),
        (lines("abc"), lines("ac"), ["line 2 was removed"]),
        (lines("abcd"), lines("aXYZd"), ["line 2 changed", "line 3 changed", "line 4 was added"]),
        (lines(""), lines("a"), ["line 1 was added"]),
        (seen("file", "1", 12), seen("file", "2", 14), ["content changed (12 → 14 bytes)"]),
        (seen("http", "1", 0), seen("http", "2", 0), ["content changed"]),
        (seen("sql", "1", 3000), seen("sql", "2", 3001), ["content changed (3,000 → 3,001 rows)"]),
        (seen("file", "1", 3), seen("file", None, 0), ["is gone"]),
        (seen("file", None, 0), seen("file", "1", 3), ["appeared (3 bytes)"]),
        (seen("file", None, 0), seen("folder", None, 0), []),
    ],
)
def test_changes_are_plain_sentences(old: Observation, new: Observation, expected: list[str]) -> None:
    assert changes(old, new) == expected


LONG = "x" * 100
SHOWN = "x" * 20


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (said("file", "a", "b"), said("file", "a", "c"), ['line 2: "b" → "c"']),
        (said("file", "a"), said("file", "a", "c"), ['line 2 was added: "c"']),
        (said("file", "a", "c"), said("file", "a"), ['line 2 was removed: "c"']),
        (said("file", "a\x1b"), said("file", "b\n"), ['line 1: "a\\x1b" → "b\\n"']),
        (said("file", f"{LONG}1"), said("file", f"{LONG}2"), [f'line 1: "…{SHOWN}1" → "…{SHOWN}2"']),
        (said("file", "a"), said("file", LONG), [f'line 1: "a" → "{LONG[:60]}…"']),
        (said("sql", "I | 1", "J | 2"), said("sql", "I | 3", "J | 2"), ['row I: "I | 1" → "I | 3"']),
        (said("sql", "I | 1"), said("sql", "I | 1", "J | 2"), ['row J was added: "J | 2"']),
        (said("sql", "I | 1", "J | 2"), said("sql", "I | 1"), ['row J was removed: "J | 2"']),
        (said("sql", "I", "J"), replace(said("sql", "J", "I"), texts=()), ["the order of the rows changed"]),
        (said("file", "a"), replace(said("file", "b"), texts=("a",)), ["line 1 changed"]),
    ],
)
def test_changes_say_what_was_there_and_what_is(old: Observation, new: Observation, expected: list[str]) -> None:
    assert changes(old, new) == expected


def test_rows_of_equal_labels_are_told_apart_and_order_counts() -> None:
    old = seen("sql", "1", 3, ("A", "1"), ("A", "2"), ("B", "3"))
    assert changes(old, seen("sql", "2", 3, ("A", "1"), ("A", "9"), ("B", "3"))) == ["row A (2) changed"]
    assert changes(old, seen("sql", "2", 3, ("B", "3"), ("A", "1"), ("A", "2"))) == ["the order of the rows changed"]


def test_long_lists_of_changes_are_cut_and_counted() -> None:
    found = changes(seen("sql", "1", 0), seen("sql", "2", 70, *((str(n), "x") for n in range(70))), limit=3)
    assert found == ["row 0 was added", "row 1 was added", "row 2 was added", "and 67 more changes"]


def test_labels_are_inert_in_sentences() -> None:
    (sentence,) = changes(seen("sql", "1", 0), seen("sql", "2", 1, ("a\x1b[31m\n", "x")))
    assert sentence == "row a\\x1b[31m\\n was added"
