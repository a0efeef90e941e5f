"""What differs between two JSON values, for people: a bounded list of changes with their paths.

Strict as everything here: 1, 1.0 and True are three values. Lists are compared after taking off what is equal at both
ends, so that one inserted item is one change. Long values are cut, so a change never carries a whole artifact.
"""

from __future__ import annotations

import enum
import itertools
import json
from collections.abc import Iterator
from typing import Final

from milepost.records.canonical import DEPTH_MAX, Json
from milepost.records.frozen import frozen
from milepost.records.mismatch import at_index, at_key
from milepost.records.shown import cut

SHOWN_MAX = 200  # characters of a value in a change


class Missing(enum.Enum):
    """The class of `MISSING`: there is nothing at that path on this side."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing.MISSING


@frozen
class Change:
    """One difference: what was at `path` before, and what is there now; values are cut at SHOWN_MAX characters."""

    path: str
    old: Json | Missing
    new: Json | Missing

    def __str__(self) -> str:
        """Say it for people: `$.month: "2026-10" → "2026-11"`."""
        return f"{self.path}: {_said(self.old)} → {_said(self.new)}"


def _said(value: Json | Missing) -> str:
    return "nothing" if value is MISSING else json.dumps(value, ensure_ascii=False)


def difference(old: Json, new: Json, *, limit: int = 50) -> list[Change]:
    """List the first `limit` changes from `old` to `new`, keys in sorted order, items in theirs."""
    return list(itertools.islice(_changes("$", old, new, 0), limit))


def first_difference(old: Json, new: Json) -> Change:
    """Give the first change between two values that are known to differ."""
    return next(_changes("$", old, new, 0))


def _changes(path: str, old: Json | Missing, new: Json | Missing, depth: int) -> Iterator[Change]:
    if depth < DEPTH_MAX and type(old) is dict and type(new) is dict:
        yield from _object_changes(path, old, new, depth + 1)
    elif depth < DEPTH_MAX and type(old) is list and type(new) is list:
        yield from _list_changes(path, old, new, depth + 1)
    elif _text(old) != _text(new):
        yield Change(path, _shown(old), _shown(new))


def _object_changes(path: str, old: dict[str, Json], new: dict[str, Json], depth: int) -> Iterator[Change]:
    for key in sorted(old.keys() | new.keys()):
        yield from _changes(path + at_key(key), old.get(key, MISSING), new.get(key, MISSING), depth)


def _list_changes(path: str, old: list[Json], new: list[Json], depth: int) -> Iterator[Change]:
    old_texts, new_texts = [_text(item) for item in old], [_text(item) for item in new]
    start = _common(old_texts, new_texts)
    end = _common(old_texts[start:][::-1], new_texts[start:][::-1])
    middle = itertools.zip_longest(old[start : len(old) - end], new[start : len(new) - end], fillvalue=MISSING)
    for index, (before, after) in enumerate(middle, start):
        yield from _changes(path + at_index(index), before, after, depth)


def _common(left: list[str], right: list[str]) -> int:
    """Count how many items are equal from the start."""
    pairs = zip(left, right, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _text(value: Json | Missing) -> str:
    return "" if value is MISSING else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _shown(value: Json | Missing) -> Json | Missing:
    """Cut a long value; a list or object too long to show becomes the beginning of its text."""
    text = value if isinstance(value, str) else _text(value)
    return value if len(text) <= SHOWN_MAX else cut(text, SHOWN_MAX)
