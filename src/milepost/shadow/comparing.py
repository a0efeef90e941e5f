"""Compares what a shadow run would have written with what was done: agreed, missed, extra, different. Pure.

Writes are matched by fields (`on`), or by effect and item key. Amounts are compared as numbers, the rest as text; a
field that only one side has is named, not judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any

from milepost.errors import MisuseError
from milepost.records.canonical import canonical
from milepost.shadow.writes import Fields, Write, aligned


class Stands(StrEnum):
    """How one write compares."""

    AGREED = "agreed"
    MISSED = "missed"  # it was done, the run would not have
    EXTRA = "extra"  # the run would have, it was not done
    DIFFERENT = "different"
    ALONE = "alone"  # nothing to compare it with


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that differs."""

    field: str
    would: Any
    did: Any


@dataclass(frozen=True, slots=True)
class Line:
    """One write and how it compares; `key` is what it was matched by."""

    stands: Stands
    key: str
    would: Write | None
    did: Write | None
    differences: Sequence[Difference] = ()

    @property
    def effect(self) -> str:
        found = self.would or self.did
        return found.effect if found is not None else ""

    def to_json(self) -> dict[str, Any]:
        return {
            "stands": str(self.stands),
            "effect": self.effect,
            "key": self.key,
            "path": self.would.path if self.would else "",
            "differences": [{"field": d.field, "would": d.would, "did": d.did} for d in self.differences],
            "would": self.would.fields if self.would else None,
            "did": self.did.fields if self.did else None,
            "about": self.would.about if self.would else {},
        }


def alone(would: Sequence[Write]) -> list[Line]:
    """Return lines for writes that are compared with nothing."""
    return [Line(Stands.ALONE, write.item_key or write.path, write, None) for write in would]


def matching_fields(would: Sequence[Write], did: Sequence[Write]) -> list[str]:
    """Return the field that holds the item key on both sides; [] when both sides have item keys themselves.

    Raises: MisuseError when no field or more than one does.
    """
    if all(write.item_key or write.path for write in did):
        return []
    shared = [name for name in _names(would) if any(name in write.fields for write in did)]
    holding = [n for n in shared if would and all(w.item_key and _same(w.fields.get(n), w.item_key) for w in would)]
    if len(holding) == 1:
        return holding
    found = ", ".join(holding or shared) or "no field is on both sides"
    raise MisuseError(
        reason="which fields name one write? Name them with --on (rows of an effect that has none of these fields are "
        f"matched by their effect alone); on both sides: {found}"
    )


def as_named(did: Sequence[Write], would: Sequence[Write]) -> list[Write]:
    """Give the fields of one side the names that the other side has for them."""
    names = _names(would)
    return [aligned(write, names) for write in did]


def compare(would: Sequence[Write], did: Sequence[Write], on: Sequence[str]) -> list[Line]:
    """Return one line for each write of either side: first what the run would have written, in its order."""
    by_effect = all(write.effect for write in did)
    there: dict[tuple[str, ...], list[Write]] = defaultdict(list)
    for write in did:
        there[_key(write, on, by_effect)].append(write)
    lines = [_line(write, there.get(_key(write, on, by_effect)), on) for write in would]
    missed = [write for writes in there.values() for write in writes]
    return [*lines, *(Line(Stands.MISSED, _said(write, on), None, write) for write in missed)]


def _line(write: Write, candidates: list[Write] | None, on: Sequence[str]) -> Line:
    if not candidates:
        return Line(Stands.EXTRA, _said(write, on), write, None)
    other = candidates.pop(0)
    differences = list(_differences(write.fields, other.fields))
    return Line(Stands.DIFFERENT if differences else Stands.AGREED, _said(write, on), write, other, differences)


def _differences(would: Fields, did: Fields) -> Iterator[Difference]:
    for name, value in would.items():
        if name in did and not _same(value, did[name]):
            yield Difference(name, value, did[name])


def _key(write: Write, on: Sequence[str], by_effect: bool) -> tuple[str, ...]:
    named = [_normal(write.fields.get(name)) for name in on] if on else [write.item_key or write.path]
    return (write.effect if by_effect else "", *named)


def _said(write: Write, on: Sequence[str]) -> str:
    return " · ".join(_text(write.fields.get(name)) for name in on) if on else write.item_key or write.path


def _names(writes: Sequence[Write]) -> list[str]:
    return list(dict.fromkeys(name for write in writes for name in write.fields))


def one_sided(lines: Sequence[Line]) -> tuple[list[str], list[str]]:
    """Return the fields that some write of the run has and what it was compared with has not, and the reverse.

    A cell of a file that is empty says nothing: its column is there for the rows of another effect.
    """
    both = [(line.would.fields, line.did.fields) for line in lines if line.would and line.did]
    only_here = {name for would, did in both for name in would.keys() - did.keys()}
    only_there = {name for would, did in both for name in did.keys() - would.keys() if _text(did[name])}
    return sorted(only_here), sorted(only_there)


# ── values ──────────────────────────────────────────────────────────────────────────────────────────


def _same(one: Any, other: Any) -> bool:
    return _normal(one) == _normal(other)


def _normal(value: Any) -> str:
    """Return a value so that 12, 12.0 and "12.00" are equal, and nothing and "" are."""
    text = _text(value).strip()
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text
    return format(number.normalize(), "f") if number.is_finite() else text


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else canonical(value).decode("utf-8")
