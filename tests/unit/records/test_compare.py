"""Differences are strict, few, bounded and in a stable order."""

from __future__ import annotations

from typing import Any

import pytest

from milepost.records.compare import MISSING, SHOWN_MAX, Change, difference


def test_a_change_is_said_in_words() -> None:
    """It stands in questions and refusals, where a class name means nothing."""
    assert [str(change) for change in difference({"a": "x", "b": 1}, {"a": "y"})] == [
        '$.a: "x" → "y"',
        "$.b: 1 → nothing",
    ]


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ({"a": 1}, {"a": 1}, []),
        (1, 1.0, [Change("$", 1, 1.0)]),
        (True, 1, [Change("$", True, 1)]),
        (0.0, -0.0, [Change("$", 0.0, -0.0)]),
        ({"a": 1, "b": 2}, {"b": 3, "c": 4}, [("$.a", 1, MISSING), ("$.b", 2, 3), ("$.c", MISSING, 4)]),
        ([1, 2, 3], [1, 9, 2, 3], [("$[1]", MISSING, 9)]),
        ([1, 2, 3], [2, 3], [("$[0]", 1, MISSING)]),
        ([{"x y": 1}], [{"x y": None}], [('$[0]["x y"]', 1, None)]),
        ({"a": []}, {"a": {}}, [("$.a", [], {})]),
        ([1, 1, 1], [1, 1], [("$[2]", 1, MISSING)]),
    ],
)
def test_each_difference_is_named_once(old: Any, new: Any, changes: list[Any]) -> None:
    found = difference(old, new)
    assert [(c.path, repr(c.old), repr(c.new)) for c in found] == [
        (c.path, repr(c.old), repr(c.new)) for c in (c if isinstance(c, Change) else Change(*c) for c in changes)
    ]


def test_values_and_lists_of_changes_are_bounded() -> None:
    """A diff goes into a question that a person reads."""
    assert len(difference(list(range(1000)), [n + 1.5 for n in range(1000)], limit=7)) == 7
    (change,) = difference("a" * 10_000, ["b" * 10_000])
    assert isinstance(change.old, str)
    assert isinstance(change.new, str)
    assert len(change.old) == len(change.new) == SHOWN_MAX


def test_very_deep_values_are_compared_without_falling_over() -> None:
    old: Any = 1
    new: Any = 2
    for _ in range(150):
        old, new = [old], [new]
    assert len(difference(old, new)) == 1
