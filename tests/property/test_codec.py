"""For values nobody thought of: equal bytes for equal values, the same class and value back, and one kind of error."""

from __future__ import annotations

import contextlib
import copy
import enum
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from milepost.errors import MilepostError, NotDecodable, NotEncodable
from milepost.records.canonical import canonical, parse
from milepost.records.codec import Codec
from milepost.records.compare import difference


class Colour(enum.Enum):
    RED = 1
    BLUE = "blue"


class Point(NamedTuple):
    x: int
    y: float


@dataclass(frozen=True)
class Leaf:
    at: datetime | date | None
    amount: Decimal
    colour: Colour = Colour.RED


@dataclass
class Tree:
    name: str
    leaves: dict[UUID, Leaf] = field(default_factory=dict)
    children: list[Tree] = field(default_factory=list)
    points: tuple[Point, ...] = ()
    either: int | float | str | Path | bytes | list[bool] = 0
    keys: dict[int | str | None, timedelta] = field(default_factory=dict)
    tags: frozenset[tuple[int, str]] = frozenset()


class Letter(BaseModel):
    subject: str
    clock: time | None = None
    tree: Tree | Leaf | None = None
    seen: set[int] = set()


texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
finite = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | st.integers() | finite | texts
jsons = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=20
)
zones = st.none() | st.integers(-86_399, 86_399).map(lambda seconds: timezone(timedelta(seconds=seconds)))
moments = st.datetimes(timezones=zones, allow_imaginary=False).map(lambda moment: moment.replace(fold=0))
decimals = st.decimals(allow_nan=False, allow_infinity=False)
leaves = st.builds(Leaf, st.none() | moments | st.dates(), decimals, st.sampled_from(Colour))
fields = {
    "name": texts,
    "leaves": st.dictionaries(st.uuids(), leaves, max_size=2),
    "points": st.lists(st.builds(Point, st.integers(), finite), max_size=2).map(tuple),
    "either": st.integers() | finite | texts | texts.map(Path) | st.binary(max_size=5) | st.lists(st.booleans()),
    "keys": st.dictionaries(st.integers() | texts | st.none(), st.timedeltas(), max_size=3),
    "tags": st.frozensets(st.tuples(st.integers(), texts), max_size=3),
}
trees = st.recursive(
    st.builds(Tree, **fields),
    lambda inner: st.builds(Tree, children=st.lists(inner, max_size=2), **fields),
    max_leaves=4,
)
letters = st.builds(
    Letter,
    subject=texts,
    clock=st.none() | st.times().map(lambda clock: clock.replace(fold=0)),
    tree=st.none() | trees | leaves,
    seen=st.sets(st.integers(), max_size=3),
)

CODECS = {
    "tree": Codec[Any](Tree, where="w"),
    "letter": Codec[Any](Letter, where="w"),
    "json": Codec[Any](Any, where="w"),
    "wide": Codec[Any](dict[str, list[Leaf | Tree | str]] | Tree | set[int] | float | None, where="w"),
}


def _classes(value: Any) -> Any:
    """Give the classes at every depth, in an order that does not depend on how a set or dict was filled."""
    if isinstance(value, dict):
        return dict, sorted((repr(key), _classes(key), _classes(part)) for key, part in value.items())
    if isinstance(value, set | frozenset):
        return type(value).__name__, sorted(str(_classes(part)) for part in value)
    if isinstance(value, list | tuple):
        return type(value).__name__, [_classes(part) for part in value]
    if hasattr(value, "__dict__") and not isinstance(value, enum.Enum):
        return type(value).__name__, [_classes(part) for part in vars(value).values()]
    return type(value).__name__, repr(value) if isinstance(value, float | Decimal) else ""


def _shuffled(value: Any, chance: random.Random) -> Any:
    """Give an equal value whose dicts were filled in another order."""
    if isinstance(value, dict):
        items = [(key, _shuffled(part, chance)) for key, part in value.items()]
        chance.shuffle(items)
        return dict(items)
    return [_shuffled(part, chance) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("name", "values"), [("tree", trees), ("letter", letters), ("json", jsons)])
@settings(deadline=None)
@given(data=st.data())
def test_what_is_decoded_is_what_was_encoded(name: str, values: st.SearchStrategy[Any], data: st.DataObject) -> None:
    """The promise of a checkpoint's output, at every depth."""
    value = data.draw(values)
    encoded, decoded = CODECS[name].round_trip(value)
    assert decoded == value
    assert str(_classes(decoded)) == str(_classes(value))
    assert CODECS[name].encode(decoded) == encoded == CODECS[name].encode(copy.deepcopy(value))
    assert canonical(parse(encoded)) == encoded


@settings(deadline=None)
@given(jsons, st.randoms(use_true_random=False))
def test_equal_values_have_equal_bytes(value: Any, chance: random.Random) -> None:
    """Property 5 of the house guide."""
    assert canonical(_shuffled(value, chance)) == canonical(value)


@settings(deadline=None)
@given(jsons, jsons)
def test_values_differ_exactly_when_their_bytes_do(old: Any, new: Any) -> None:
    assert bool(difference(old, new)) == (canonical(old) != canonical(new))


class Hostile:
    """An object every one of whose answers is an exception."""

    def _refuse(self, *_: object) -> Any:
        raise ZeroDivisionError("hostile")

    __eq__ = __hash__ = __repr__ = __str__ = __len__ = __iter__ = __bool__ = _refuse  # type: ignore[assignment]
    __getattr__ = __reduce__ = __format__ = __index__ = __float__ = _refuse  # type: ignore[assignment]


class HostileText(str):
    __slots__ = ()
    __eq__ = __hash__ = __str__ = __len__ = Hostile._refuse  # type: ignore[assignment]


hostile: st.SearchStrategy[Any] = st.builds(Hostile) | st.builds(HostileText, texts) | st.functions() | st.just(Hostile)
anything = st.recursive(
    scalars | hostile | leaves | st.floats() | st.text(max_size=3) | st.binary(max_size=3) | st.complex_numbers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(scalars, inner, max_size=3)
        | st.builds(Leaf, inner, inner, inner)
        | st.builds(Tree, inner, inner, inner, inner)
        | inner.map(lambda part: Letter.model_construct(subject=part, tree=part))
        | inner.map(lambda part: iter([part]))
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("name", CODECS)
@settings(deadline=None)
@given(value=anything)
def test_any_object_at_all_passes_or_is_not_encodable(name: str, value: Any) -> None:
    """A step's output may be anything; nothing but our own error may come of it, and its text can be read."""
    encoded = _unless(NotEncodable, lambda: CODECS[name].round_trip(value)[0])
    if encoded is not None:
        CODECS[name].decode(encoded)


@pytest.mark.parametrize("name", CODECS)
@settings(deadline=None)
@given(data=st.binary(max_size=30) | jsons.map(canonical))
def test_any_bytes_at_all_are_read_or_not_decodable(name: str, data: bytes) -> None:
    _unless(NotDecodable, lambda: CODECS[name].decode(data))


def _unless(refusal: type[MilepostError], act: Callable[[], Any]) -> Any:
    """Act; a refusal must name a place and be a text that can be printed, anything else raised is a failure."""
    with contextlib.suppress(refusal):
        try:
            return act()
        except refusal as refused:
            message = f"{refused.path} {refused}".encode()
            if not message.startswith(b"$"):
                pytest.fail(f"no path: {message!r}")
            raise
