"""Shapes of values without parts: JSON's own scalars, and classes that travel as one text.

Decimal keeps its exponent (1.0 and 1.00 are two values), an aware datetime its instant and its offset; a zone's
*name* is not kept, what comes back has the fixed offset. A timedelta is ISO 8601 in seconds, bytes are base64.
An Enum is its member's name: a value may be renumbered by `auto()` and would then silently mean another member.
"""

from __future__ import annotations

import base64
import enum
import pathlib
import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

from milepost.records.canonical import LONG_TEXT, Json, Walk, check_exact, write
from milepost.records.mismatch import Mismatch, class_name
from milepost.records.secret import Secret
from milepost.records.shapes import ANY_KIND, OBJECT, TEXT, UNTYPED, Shape

_DURATION = re.compile(r"(-?)PT(\d+)(?:\.(\d{6}))?S")
_MICROSECONDS = 1_000_000
_LISTED_MAX = 12
"""Members of an Enum that are named to whoever gave none of them."""


def untyped() -> Shape:
    """Give the shape of a value without annotation: only exact JSON classes pass."""
    return Shape(UNTYPED, ANY_KIND, ANY_KIND, check_exact, _same)


def _same(value: Json) -> Json:
    return value


def _exactly(*classes: type) -> Shape:
    """Give the shape of one of JSON's own scalars, or of several that JSON itself tells apart."""
    name = class_name(classes[0])

    def load(value: Json) -> Json:
        if type(value) in classes:
            return value
        raise Mismatch.of(value, name)

    def dump(value: Any, walk: Walk) -> Json:
        return load(value)

    return Shape(name, frozenset(classes), frozenset(classes), dump, load, immutable=True)


def _dump_str(value: Any, walk: Walk) -> Json:
    if type(value) is not str:
        raise Mismatch.of(value, "str")
    if len(value) > LONG_TEXT:
        walk.weigh(len(value))
    return value


def _load_str(value: Json) -> str:
    if type(value) is str:
        return value
    raise Mismatch.of(value, "str")


def _as_text(cls: type, to_text: Callable[[Any], str], from_text: Callable[[str], Any], **flags: bool) -> Shape:
    """Give the shape of a class that travels as one text, immutable unless said; `to_text` may raise `Mismatch`."""
    name = class_name(cls)

    def dump(value: Any, walk: Walk) -> Json:
        if type(value) is not cls:
            raise Mismatch.of(value, name)
        return _dump_str(to_text(value), walk)

    def load(value: Json) -> Any:
        if type(value) is not str:
            raise Mismatch.of(value, f"a text that holds a {name}")
        try:
            return from_text(value)
        except (ValueError, ArithmeticError):
            raise Mismatch(f"a text that holds a {name}", "another text") from None

    return Shape(name, frozenset((cls,)), TEXT, dump, load, **({"immutable": True} | flags))


def _decimal_text(value: Decimal) -> str:
    if not value.is_finite():
        raise Mismatch("a finite Decimal", str(value))
    return str(value)


def _decimal(text: str) -> Decimal:
    """Read a Decimal written as Python writes it: what comes back is the same text. Raises: ValueError, Mismatch."""
    value = Decimal(text)
    if _decimal_text(value) != text:
        raise ValueError(text)
    return value


def _moment_text(value: datetime | time) -> str:
    """Write a datetime or time; refuse what does not come back from ISO 8601."""
    offset = value.utcoffset()
    if value.tzinfo is None:
        if value.fold:
            raise Mismatch("a moment without fold, or one with a time zone", "fold=1 without a time zone")
    elif offset is None:
        raise Mismatch("a time zone that knows its offset", class_name(type(value.tzinfo)))
    elif offset.microseconds:  # Python reads +00:00:00.000001 as UTC
        raise Mismatch("a time zone whose offset is in whole seconds", f"an offset of {offset}")
    return value.isoformat()


def _duration_text(value: timedelta) -> str:
    total = value // timedelta(microseconds=1)
    seconds, rest = divmod(abs(total), _MICROSECONDS)
    return f"{'-' if total < 0 else ''}PT{seconds}{f'.{rest:06d}' if rest else ''}S"


def _duration(text: str) -> timedelta:
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(text)
    sign, seconds, rest = match.groups()
    duration = timedelta(seconds=int(seconds), microseconds=int(rest or 0))
    return -duration if sign else duration


def _base64_text(value: bytes | bytearray) -> str:
    return base64.b64encode(value).decode("ascii")


def _from_base64(text: str) -> bytes:
    return base64.b64decode(text.encode("ascii"), validate=True)


def _path(cls: type[pathlib.PurePath]) -> Shape:
    concrete = type(cls())
    return _as_text(concrete, str, concrete, holds_paths=True)


def _str() -> Shape:
    return Shape("str", frozenset((str,)), TEXT, _dump_str, _load_str, immutable=True, is_raw=True)


def _secret() -> Shape:
    def dump(value: Any, walk: Walk) -> Json:
        if type(value) is not Secret:
            raise Mismatch.of(value, "Secret")
        return {"$secret": value.name}

    def load(value: Json) -> Secret:
        if type(value) is dict and list(value) == ["$secret"] and type(value["$secret"]) is str:
            return Secret(value["$secret"])
        raise Mismatch.of(value, 'an object {"$secret": NAME}')

    return Shape("Secret", frozenset((Secret,)), OBJECT, dump, load, immutable=True)


# A float annotation takes an int, as type checkers do; JSON tells 1 from 1.0, so each comes back as what it was.
SCALARS: dict[object, Callable[[], Shape]] = {
    type(None): partial(_exactly, type(None)),
    bool: partial(_exactly, bool),
    int: partial(_exactly, int),
    float: partial(_exactly, float, int),
    str: _str,
    bytes: partial(_as_text, bytes, _base64_text, _from_base64, is_raw=True),
    bytearray: partial(_as_text, bytearray, _base64_text, lambda t: bytearray(_from_base64(t)), immutable=False),
    Decimal: partial(_as_text, Decimal, _decimal_text, _decimal),
    datetime: partial(_as_text, datetime, _moment_text, datetime.fromisoformat),
    date: partial(_as_text, date, date.isoformat, date.fromisoformat),
    time: partial(_as_text, time, _moment_text, time.fromisoformat),
    timedelta: partial(_as_text, timedelta, _duration_text, _duration),
    UUID: partial(_as_text, UUID, str, UUID),
    Secret: _secret,
    **{
        cls: partial(_path, cls)
        for cls in (
            pathlib.Path,
            pathlib.PurePath,
            pathlib.PosixPath,
            pathlib.PurePosixPath,
            pathlib.PureWindowsPath,
        )
    },
}


def enum_shape(cls: type[enum.Enum]) -> Shape:
    """Give the shape of an Enum: its member's name; of a Flag: its number, since combinations have no name."""
    name = class_name(cls)
    is_flag = issubclass(cls, enum.Flag)
    kind = int if is_flag else str
    member = f"a member of {name}" if is_flag else f"a member of {name} ({_listed([*cls.__members__])})"

    def dump(value: Any, walk: Walk) -> Json:
        if type(value) is not cls:
            raise Mismatch.of(value, name)
        return int(value.value) if is_flag else value.name

    def load(value: Json) -> Any:
        if type(value) is not kind:
            raise Mismatch.of(value, member)
        try:
            return cls(value) if is_flag else cls[str(value)]
        except (KeyError, ValueError):
            raise Mismatch(member, f"{value!r:.60}, which it does not have") from None

    return Shape(name, frozenset((cls,)), frozenset((kind,)), dump, load, immutable=True)


def _listed(names: list[str]) -> str:
    more = "" if len(names) <= _LISTED_MAX else f", and {len(names) - _LISTED_MAX} more"
    return ", ".join(names[:_LISTED_MAX]) + more


def literal_shape(values: tuple[Any, ...], parts: list[Shape]) -> Shape:
    """Give the shape of `Literal[…]`: exactly these values, each written as its own class is."""
    name = f"Literal{list(values)!r}"
    written = {(type(v), v): p.dump(v, Walk()) for v, p in zip(values, parts, strict=True)}
    known = {write(text): value for (_, value), text in written.items()}
    if len(known) != len(written):
        raise ValueError(name)

    def dump(value: Any, walk: Walk) -> Json:
        if type(value) in classes and (type(value), value) in written:
            return written[type(value), value]
        raise Mismatch(f"one of {name}", class_name(type(value)))

    def load(value: Json) -> Any:
        text = write(value)
        if text in known:
            return known[text]
        raise Mismatch(f"one of {name}", f"{text[:60]!r}")

    classes = frozenset(type(value) for value in values)
    kinds = frozenset(type(text) for text in written.values())
    return Shape(name, classes, kinds, dump, load, immutable=True)
