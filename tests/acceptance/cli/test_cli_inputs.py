"""`name=value`: JSON where it fits the input's type, else the text itself; what fits neither is refused by name."""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pytest

from milepost import task
from milepost.cli.inputs import parse_inputs
from milepost.errors import BadInput


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Range:
    first: int
    last: int


@task(name="typed_inputs")
def typed(
    word: str = "",
    number: int = 0,
    money: Decimal = Decimal(0),
    day: datetime.date = datetime.date(2026, 1, 1),
    file: Path = Path(),
    colour: Colour = Colour.RED,
    span: Range = Range(0, 0),  # noqa: B008 – a default to parse beside
    maybe: str | None = None,
    kind: Literal["a", "b"] = "a",
    many: list[Path] | None = None,
    anything: Any = None,
    flag: bool = False,
) -> None: ...


@task(name="odd_inputs")
def odd(first: int, /, *, named: str, **rest: int) -> None: ...


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("word=2026", "2026"),
        ("word=", ""),
        ('word="quoted"', '"quoted"'),
        ("word=a=b", "a=b"),
        ("number=7", 7),
        ("money=1.10", Decimal("1.10")),
        ("day=2026-10-31", datetime.date(2026, 10, 31)),
        ("file=in/mail.eml", Path("in/mail.eml")),
        ("file=2026", Path("2026")),
        ("colour=RED", Colour.RED),
        ("colour=red", Colour.RED),
        ('span={"first":1,"last":2}', Range(1, 2)),
        ("maybe=null", None),
        ("maybe=nothing", "nothing"),
        ("kind=b", "b"),
        ('many=["a","b"]', [Path("a"), Path("b")]),
        ("anything=hello", "hello"),
        ("anything=[1,2]", [1, 2]),
        ("flag=true", True),
    ],
)
def test_a_value_is_read_by_its_annotation(given: str, value: object) -> None:
    """A shell user quotes nothing that need not be quoted."""
    found = typed.spec.arguments.bind(*parse_inputs(typed.spec, [given]))[given.partition("=")[0]]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("number=1.5", "expected int, found '1.5'"),
        ("number=NaN", "expected int"),
        ("money=a lot", "expected decimal.Decimal, found 'a lot'"),
        ("day=tomorrow", "expected datetime.date, found 'tomorrow'"),
        ("colour=blue", "found 'blue'"),
        ('span={"first":1}', "at $"),
        ("kind=c", "found 'c'"),
        ("flag=yes", "expected bool, found 'yes'"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_name_and_type(given: str, says: str) -> None:
    """The message can be acted on without reading the code."""
    with pytest.raises(BadInput) as refused:
        parse_inputs(typed.spec, [given])
    assert refused.value.facts["name"] == given.partition("=")[0]
    assert says in str(refused.value)
    assert len(str(refused.value)) < 400


def test_positional_and_collected_inputs_are_given_by_name_too() -> None:
    """Whatever Python's signature says, the command line has one form."""
    assert parse_inputs(odd.spec, ["first=1", "named=x", "more=2"]) == ((1,), {"named": "x", "more": 2})
    with pytest.raises(BadInput, match="named: it is missing"):
        parse_inputs(odd.spec, ["first=1"])
