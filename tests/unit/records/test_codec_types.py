"""Each kind of value comes back as the same class and value, or is refused with the exact path."""

from __future__ import annotations

import enum
import functools
import io
import ipaddress
import json
import math
import re
import uuid
import zoneinfo
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, TypedDict, TypeVar

import pytest
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, RootModel, field_validator

from milepost.errors import NotDecodable, NotEncodable
from milepost.records.arguments import ArgumentsCodec
from milepost.records.canonical import DEPTH_MAX
from milepost.records.codec import Codec
from milepost.records.secret import Secret

T = TypeVar("T")
Number = NewType("Number", str)


class Colour(enum.Enum):
    RED = enum.auto()
    BLUE = (1, 2)


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Level(enum.IntEnum):
    LOW = 1


class Point(NamedTuple):
    x: int
    y: float = 0.5


class Row(TypedDict):
    a: int
    b: NotRequired[str]


@dataclass
class Line:
    sku: str
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Frozen:
    at: datetime
    tags: frozenset[str] = frozenset()


@dataclass
class Invoice:
    lines: list[Line]
    scan: bytes = b""
    parent: Invoice | None = None


@dataclass
class Found(Generic[T]):
    result: T
    ref: str | None = None


@dataclass
class FoundLine(Found[Line]):
    note: str = ""


@dataclass
class Doubling:
    value: int

    def __post_init__(self) -> None:
        self.value *= 2


@dataclass
class Summed:
    parts: list[int]
    total: int = field(init=False)

    def __post_init__(self) -> None:
        self.total = sum(self.parts)

    @functools.cached_property
    def mean(self) -> float:
        return self.total / len(self.parts)


@dataclass
class Derived(Line):
    pass


class Mail(BaseModel):
    subject: str
    size: int = 0
    scan: bytes = b""
    seen: set[int] = set()


class Shouting(BaseModel):
    text: str

    @field_validator("text")
    @classmethod
    def louder(cls, text: str) -> str:
        return text + "!"


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


class Aliased(BaseModel):
    a: int = Field(alias="b")
    b: int = Field(alias="a")


class Private(BaseModel):
    a: int
    _cache: list[int] = PrivateAttr(default_factory=list)


class Hidden(BaseModel):
    token: str = Field(exclude=True)


class Names(RootModel[list[str]]):
    pass


class Text(str):
    __slots__ = ()


GOOD: list[tuple[Any, Any]] = [
    (None, None),
    (bool, True),
    (int, 2**200),
    (float, -0.0),
    (float, 1),
    (float, 5e-324),
    (str, "é\x00\u2028"),
    (bytes, b"\x00\xff"),
    (bytearray, bytearray(b"ab")),
    (Decimal, Decimal("1.00")),
    (Decimal, Decimal("-0E+3")),
    (date, date(2026, 10, 31)),
    (datetime, datetime(2026, 10, 31, 1, 2, 3, 4)),
    (datetime, datetime(2026, 10, 31, tzinfo=UTC)),
    (datetime, datetime(2026, 10, 31, tzinfo=timezone(timedelta(hours=-3, minutes=-30)))),
    (time, time(1, 2, 3, tzinfo=UTC)),
    (timedelta, timedelta(days=-3, microseconds=1)),
    (timedelta, timedelta.max),
    (timedelta, timedelta.min),
    (uuid.UUID, uuid.UUID(int=7)),
    (Path, Path("a/../b")),
    (PurePosixPath, PurePosixPath("/x")),
    (Colour, Colour.BLUE),
    (Level, Level.LOW),
    (Access, Access.READ | Access.WRITE),
    (Secret, Secret("TOKEN")),
    (Literal["a", 1, True, None], True),
    (Literal[1, True], 1),
    (Literal[Colour.RED, "RED!"], Colour.RED),
    (Number, "n"),
    (Point, Point(1)),
    (Row, {"a": 1}),
    (Row, {"a": 1, "b": "x"}),
    (Line, Line("s", Decimal("1.50"))),
    (Frozen, Frozen(datetime(2026, 1, 1, tzinfo=UTC), frozenset({"b", "a"}))),
    (Invoice, Invoice([Line("s", Decimal(1))], b"x", Invoice([]))),
    (Found[Line], Found(Line("s", Decimal(1)), "r")),
    (Found[list[int]], Found([1])),
    (FoundLine, FoundLine(Line("s", Decimal(1)))),
    (Summed, Summed([1, 2])),
    (Mail, Mail(subject="s")),
    (Mail, Mail(subject="s", scan=b"\xff", seen={3, 1})),
    (Shouting, Shouting(text="hi")),
    (Open, Open(a=1, b=[1, {"c": None}])),  # type: ignore[call-arg]
    (Aliased, Aliased(b=1, a=2)),
    (Private, Private(a=1)),
    (Names, Names(["a"])),
    (list[int], []),
    (list, [1, "a", None, [True, 1.5, {}]]),
    (Sequence[int], [1]),
    (Mapping[str, int], {"b": 1, "a": 2}),
    (tuple[int, ...], (1, 2)),
    (tuple[int, str], (1, "a")),
    (tuple[()], ()),
    (set[str], {"b", "a"}),
    (frozenset[tuple[int, str]], frozenset({(1, "a"), (0, "b")})),
    (dict[int, str], {2: "b", -1: "a"}),
    (dict[int | str, str], {1: "a", "1": "b"}),
    (dict[Path, date], {Path("x"): date(2026, 1, 1)}),
    (dict[tuple[int, bool], Colour], {(1, True): Colour.RED}),
    (dict[Colour | None, int], {None: 1, Colour.RED: 2}),
    (int | None, None),
    (int | float, 1),
    (int | float, 1.0),
    (int | str | bool, True),
    (str | Path, Path("a")),
    (str | Path, "a"),
    (datetime | date | str, date(2026, 1, 1)),
    (Line | Found[int] | None, Found(3)),
    (Line | Found[int] | None, None),
    (list[int] | list[str], ["a"]),
    (Secret | str, Secret("TOKEN")),
    (dict[str, str] | Secret, {"$secret": "TOKEN"}),
    (dict[str, str], {"$secret": "TOKEN"}),
    (Any, {"$secret": "TOKEN", "$unset": ["a"], "Path": "x"}),
    (Any, None),
    (Any | None, None),
    (Annotated[int, Field(gt=0)], 3),
    (Annotated[list[str], "a remark"], ["a"]),
    (ipaddress.IPv4Address, ipaddress.IPv4Address("10.0.0.1")),
    (complex, 1 + 2j),
]


def _name(part: object) -> str:
    """Name a case the same in every process: without addresses, and without the order of a set."""
    if isinstance(part, int | set | frozenset):
        return type(part).__name__
    return re.sub(r" at 0x[0-9a-f]+", "", str(part))[:40]


def _same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and left == right and repr(left) == repr(right)


@pytest.mark.parametrize(("annotation", "value"), GOOD, ids=_name)
def test_a_value_comes_back_as_the_same_class_and_value(annotation: Any, value: Any) -> None:
    """The body's output and what a resume returns must be one and the same."""
    codec = Codec[Any](annotation, where="step s, return value")
    data, decoded = codec.round_trip(value)
    assert isinstance(value, set | frozenset | dict | BaseModel | Frozen) or _same(decoded, value)
    assert type(decoded) is type(value)
    assert decoded == value
    assert codec.encode(decoded) == data == codec.encode(value)
    assert codec.decode(data) == value


@pytest.mark.parametrize("text", [" 1 ", "1_0", "\u0661", "+1", ".5", "1e2", "NaN", "sNaN", "one", ""])
def test_a_decimal_is_read_as_it_is_written_and_no_other_way(text: str) -> None:
    """What a person gives is what another one sees in the request, and approves."""
    with pytest.raises(NotDecodable, match="Decimal"):
        Codec[Any](Decimal, where="here").decode(json.dumps(text).encode())


def test_who_names_no_member_of_an_enum_hears_their_names() -> None:
    with pytest.raises(NotDecodable) as caught:
        Codec[Any](Colour, where="here").decode(b'"PINK"')
    assert caught.value.expected.endswith("Colour (RED, BLUE)")
    assert "PINK" in caught.value.found


BAD: list[tuple[Any, Any, str, str]] = [
    (int, True, "$", "bool"),
    (int, 1.0, "$", "float"),
    (bool, 1, "$", "int"),
    (float, True, "$", "bool"),
    (float, math.nan, "$", "nan"),
    (list[float], [0.5, math.inf], "$[1]", "inf"),
    (str, Text("a"), "$", "Text"),
    (str, "a\udc80", "$", "surrogate"),
    (dict[str, str], {"a b": "\ud800"}, '$["a b"]', "surrogate"),
    (dict[str, Any], {"a": {"b": [0, (1,)]}}, "$.a.b[1]", "tuple"),
    (Any, {1: "a"}, "$", "int"),
    (Any, Line("s", Decimal(1)), "$", "Line"),
    (Any, {"x": Secret("TOKEN")}, "$.x", "Secret"),
    (int, 10**5000, "$", "longer int"),
    (Decimal, Decimal("NaN"), "$", "NaN"),
    (datetime, datetime(2026, 10, 25, 2, 30, fold=1), "$", "fold=1"),
    (datetime, datetime(2026, 1, 1, tzinfo=timezone(timedelta(microseconds=1))), "$", "offset of 0:00:00.000001"),
    (date, datetime(2026, 1, 1), "$", "datetime"),
    (time, time(1, tzinfo=zoneinfo.ZoneInfo("UTC")).replace(tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")), "$", "Zone"),
    (tuple[int, ...], [1], "$", "list"),
    (tuple[int, str], (1, "a", 2), "$", "3 items"),
    (list[Line], [Line("s", Decimal(1)), Derived("s", Decimal(1))], "$[1]", "Derived"),
    (Invoice, Invoice([Line("s", 1)]), "$.lines[0].amount", "int"),  # type: ignore[arg-type]
    (Doubling, Doubling(1), "$.value", "int"),
    (Row, {"a": 1, "c": 2}, "$", "'c'"),
    (Row, {"b": "x"}, "$", "no such key"),
    (Point, (1, 2.0), "$", "tuple"),
    (Literal["a"], "b", "$", "str"),
    (int | str, 1.5, "$", "float"),
    (Colour, 1, "$", "int"),
    (set[int], {1, "a"}, "$[…]", "str"),
    (Annotated[int, Field(gt=0)], -1, "$", "greater than 0"),
    (list[int], (item for item in [1]), "$", "generator"),
    (Path, "a", "$", "str"),
    (dict[str, int], OrderedDict(a=1), "$", "OrderedDict"),
]


@pytest.mark.parametrize(("annotation", "value", "path", "found"), BAD, ids=_name)
def test_what_would_not_come_back_equal_is_refused_with_its_path(
    annotation: Any, value: Any, path: str, found: str
) -> None:
    """A wrong class must stop the step before anything is in doubt, and say where it is."""
    with pytest.raises(NotEncodable) as caught:
        Codec[Any](annotation, where="step s, return value").round_trip(value)
    assert caught.value.path == path
    assert found in caught.value.found
    assert "step s, return value" in str(caught.value)


@pytest.mark.parametrize(
    ("annotation", "path", "reason"),
    [
        (Iterator[int], "$", "running or open"),
        (Callable[[int], int], "$", "running or open"),
        (io.BytesIO, "$", "running or open"),
        (object(), "$", "no way"),
        (deque[int], "$", "no way"),
        (type[int], "$", "no way"),
        (Hidden, "$", "excluded"),
        ("Nowhere", "$", "cannot be found"),
        (dict[str, list[io.StringIO]], "$", "running or open"),
        (Literal[b"YQ==", "WVE9PQ=="], "$", "same text"),
    ],
    ids=_name,
)
def test_an_annotation_that_cannot_be_recorded_is_refused_at_declaration(
    annotation: Any, path: str, reason: str
) -> None:
    """Better at import than on day three."""
    with pytest.raises(NotEncodable) as caught:
        Codec[Any](annotation, where="step s, return value")
    assert caught.value.path == path
    assert reason in caught.value.found


def test_a_part_of_a_class_that_cannot_be_recorded_is_named_with_its_field() -> None:
    @dataclass
    class Holder:
        stream: io.StringIO

    @dataclass
    class Outer:
        holder: Holder

    with pytest.raises(NotEncodable) as caught:
        Codec[Any](Outer, where="w")
    assert caught.value.path == "$.holder.stream"


def test_an_init_var_is_refused_because_it_is_not_kept() -> None:
    @dataclass
    class Seeded:
        seed: InitVar[int]

    with pytest.raises(NotEncodable, match="InitVar"):
        Codec[Any](Seeded, where="w")


def test_hidden_state_is_refused_and_a_cached_property_is_not() -> None:
    """What is not a field would be lost in silence."""
    line = Line("s", Decimal(1))
    line.extra = 1  # type: ignore[attr-defined]
    with pytest.raises(NotEncodable, match="'extra'"):
        Codec(Line, where="w").encode(line)
    summed = Summed([1, 3])
    assert summed.mean == 2
    assert Codec[Summed](Summed, where="w").round_trip(summed)[1] == summed


def test_a_changed_private_attribute_of_a_model_is_refused() -> None:
    private = Private(a=1)
    private._cache.append(1)
    with pytest.raises(NotEncodable) as caught:
        Codec[Private](Private, where="w").round_trip(private)
    assert caught.value.path == "$._cache[0]"


def test_a_computed_field_that_was_changed_is_refused() -> None:
    summed = Summed([1, 2])
    summed.total = 4
    with pytest.raises(NotEncodable) as caught:
        Codec[Summed](Summed, where="w").round_trip(summed)
    assert caught.value.path == "$.total"


def test_which_fields_of_a_model_were_given_is_kept() -> None:
    """`exclude_unset` must send the same request after a resume."""
    codec = Codec[Mail](Mail, where="w")
    for mail in (Mail(subject="s"), Mail(subject="s", size=0)):
        assert codec.round_trip(mail)[1].model_dump(exclude_unset=True) == mail.model_dump(exclude_unset=True)


def test_validators_do_not_run_again_on_what_they_passed() -> None:
    assert Codec[Shouting](Shouting, where="w").round_trip(Shouting(text="a"))[1].text == "a!"


def test_a_zone_name_becomes_its_offset_and_the_instant_stays() -> None:
    """Documented: the name of a zone is not kept."""
    berlin = datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
    decoded = Codec[datetime](datetime, where="w").round_trip(berlin)[1]
    assert decoded.astimezone(UTC) == berlin.astimezone(UTC)
    assert decoded.utcoffset() == berlin.utcoffset()


def test_a_union_names_its_member_only_where_json_could_be_mistaken() -> None:
    """Stored data must not depend on the module's name or on the order of the members."""
    codec = Codec[Any](Found[int] | Found[Line] | None, where="w")
    assert codec.encode(Found(1)) == b'{"Found[int]":{"ref":null,"result":1}}'
    assert codec.encode(Found(Line("s", Decimal(1)))).startswith(b'{"Found[Line]":')
    assert Codec[Any](list[int] | list[str], where="w").encode(["a"]) == b'{"list[str]":["a"]}'
    assert Codec[Any](Line | None, where="w").encode(Line("s", Decimal(1))) == b'{"amount":"1","sku":"s"}'
    assert Codec[Any](int | str | list[int], where="w").encode([1]) == b"[1]"


def test_equal_values_have_equal_bytes_whatever_their_order() -> None:
    dicts = Codec[Any](dict[str, int], where="w")
    assert dicts.encode({"a": 1, "b": 2}) == dicts.encode({"b": 2, "a": 1}) == b'{"a":1,"b":2}'
    sets = Codec[Any](set[int], where="w")
    assert sets.encode({10, 9, 1}) == sets.encode({1, 9, 10})


def test_text_and_bytes_given_as_json_are_read_as_json() -> None:
    """A person gives a result as JSON, whatever the effect returns."""
    assert Codec[str](str, where="w").decode(b'"7 bolts"', "application/json") == "7 bolts"
    assert Codec[bytes](bytes, where="w").decode(b'"YWI="', "application/json") == b"ab"
    assert Codec[str](str, where="w").decode(b'"7 bolts"', "text/plain; charset=utf-8") == '"7 bolts"'


def test_text_and_bytes_as_the_whole_value_are_stored_raw() -> None:
    assert (Codec[str](str, where="w").media_type, Codec[str](str, where="w").encode("é")) == (
        "text/plain; charset=utf-8",
        "é".encode(),
    )
    assert Codec[bytes](bytes, where="w").media_type == "application/octet-stream"
    assert Codec[Any](str | None, where="w").media_type == "application/json"


@pytest.mark.parametrize(
    ("annotation", "data", "path"),
    [
        (int, b"1.0", "$"),
        (int, b"\xff", "$"),
        (int, b"{", "$"),
        (str, b"\xff", "$"),
        (dict[str, int], b'{"a":1,"a":1}', "$"),
        (Line, b'{"amount":"1"}', "$.sku"),
        (Line, b'{"amount":"x","sku":""}', "$.amount"),
        (Line, b'{"amount":"1","sku":"","x":1}', "$"),
        (list[Colour], b'["RED","GREEN"]', "$[1]"),
        (set[int], b"[1,1]", "$"),
        (timedelta, b'"1h"', "$"),
        (bytes | None, b'"%%%"', "$"),
        (str | Path, b'{"os":"x"}', "$"),
        (Mail, b'{"subject":"s","zzz":1}', "$"),
        (dict[int, int], b'{"x":1}', "$.x"),
        (Any, b"[" * 100_000, "$"),
        (Any, b'"\\ud800"', "$"),
        (Any, b"[1e999]", "$"),
        (float, b"NaN", "$"),
    ],
)
def test_bytes_that_do_not_fit_the_annotation_are_refused(annotation: Any, data: bytes, path: str) -> None:
    """No fallback: what cannot be read exactly is an error that names the place."""
    with pytest.raises(NotDecodable) as caught:
        Codec[Any](annotation, where="step s, return value").decode(data)
    assert caught.value.path == path


def test_a_field_added_with_a_default_reads_what_older_code_wrote() -> None:
    assert Codec[Invoice](Invoice, where="w").decode(b'{"lines":[]}') == Invoice([])
    assert Codec[Mail](Mail, where="w").decode(b'{"subject":"s"}') == Mail(subject="s")


def test_circles_depth_and_multiplied_lists_end_in_a_clear_refusal() -> None:
    """Three ways to exhaust a process with a small value."""
    circle: list[Any] = []
    circle.append(circle)
    invoice = Invoice([])
    invoice.parent = invoice
    deep: Any = 0
    for _ in range(DEPTH_MAX + 1):
        deep = [deep]
    doubled: Any = [0] * 1000
    for _ in range(40):
        doubled = [doubled, doubled]
    for annotation, value in ((Any, circle), (Invoice, invoice), (Any, deep), (Any, doubled)):
        with pytest.raises(NotEncodable, match="at most"):
            Codec[Any](annotation, where="w").encode(value)


def test_user_code_that_raises_while_it_is_read_is_the_cause() -> None:
    @dataclass
    class Angry:
        a: int

        def __getattribute__(self, name: str) -> Any:
            if name == "a":
                raise ZeroDivisionError("angry")
            return object.__getattribute__(self, name)

    def body(item: Angry) -> None: ...

    angry = Angry.__new__(Angry)
    arguments = ArgumentsCodec(body, skip_first=False, unwatched=(), where="w")
    for encode in (Codec[Any](Angry, where="w").encode, lambda item: arguments.encode({"item": item})):
        with pytest.raises(NotEncodable) as caught:
            encode(angry)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_immutable_typed_and_holds_paths_are_told_from_the_annotation() -> None:
    immutable = [int, str | None, tuple[int, ...], Point, Colour, frozenset[Decimal], Path, datetime]
    assert all(Codec[Any](annotation, where="w").immutable for annotation in immutable)
    assert not any(Codec[Any](a, where="w").immutable for a in (list[int], tuple[list[int], ...], Any, Line, Row))
    assert Codec[Any](Line, where="w").typed
    assert not Codec[Any](Any, where="w").typed
    assert Codec[Any](dict[str, list[Path]], where="w").holds_paths
    assert not Codec[Any](Invoice, where="w").holds_paths
