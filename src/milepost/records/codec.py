"""Values to bytes and back, by their annotation: what comes back is of the same class and value at every depth.

One codec per annotation, built when a function is declared. Text and bytes as the whole value are stored raw, all else
as canonical JSON. No pickle, no class named by data. Called by `declare`, and by the protocol around a body.
Long lists of a type's rules: `shapes.scalar`, `shapes.container`, `shapes.fields`, `shapes.models`.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar, cast

from milepost.errors import NotDecodable, NotEncodable
from milepost.records.canonical import CHARACTERS_MAX, Json, Walk, parse, read, write, write_and_read
from milepost.records.compare import MISSING, first_difference
from milepost.records.mismatch import Mismatch, class_name
from milepost.records.shapes import Shape, Unsupported
from milepost.records.shapes.build import build, is_untyped

T = TypeVar("T")

_JSON = "application/json"
_TEXT = "text/plain; charset=utf-8"
_BYTES = "application/octet-stream"
_RAW = {"str": _TEXT, "bytes": _BYTES}


class Codec(Generic[T]):
    """The way of one annotation's values to bytes and back.

    `where` begins every message, for example `step match, return value`.

    Raises:
        NotEncodable: the annotation cannot be recorded at all; with the part that cannot, and why.
    """

    def __init__(self, annotation: object, *, where: str) -> None:
        self._where = where
        self._shape = shape = shape_for(annotation, where=where)
        self.media_type = _RAW[shape.name] if shape.is_raw else _JSON
        self._is_json = self.media_type == _JSON
        self.typed = not is_untyped(annotation)
        """Whether there was an annotation; without one only exact JSON types pass."""
        self.described = shape.name
        """The annotation in words, for somebody who has to give a value of it."""
        self.immutable = shape.immutable
        """Whether values of this annotation can never be changed in place."""
        self.holds_paths = shape.holds_paths
        """Whether a value may contain a path; if not, `find_paths` need not be asked."""

    def encode(self, value: T) -> bytes:
        """Write a value; equal values give equal bytes.

        Raises:
            NotEncodable: a part is of another class than annotated or cannot be written, with its path.
        """
        try:
            return self._raw(value) if not self._is_json else write(self._shape.dump(value, Walk()))
        except Exception as error:  # noqa: BLE001 - a property, a time zone or an __eq__ is user code
            raise not_encodable(error, self._where) from cause_of(error)

    def decode(self, data: bytes, media_type: str = "") -> T:
        """Read a value back, as stored by this or an older version of the annotated type.

        `media_type` is how it was stored when that may be JSON although the annotation is text or bytes: what a
        person gave, or what the type was before.

        Raises:
            NotDecodable: the bytes do not hold a value of this annotation, with the path.
        """
        try:
            if self._is_json or media_type == _JSON:
                return cast(T, self._shape.load(parse(data)))
            return cast(T, data if self.media_type == _BYTES else data.decode("utf-8"))
        except Exception as error:  # noqa: BLE001 - a constructor is user code
            raise not_decodable(error, self._where) from cause_of(error)

    def round_trip(self, value: T) -> tuple[bytes, T]:
        """Write a value and read it back: the bytes to store, and the value to go on with.

        Raises:
            NotEncodable: as `encode`, or the value does not come back as the same class and value.
        """
        try:
            if not self._is_json:
                return self._raw(value), value  # immutable, and strict UTF-8 has one inverse
            data, back = write_and_read(self._shape.dump(value, Walk()))
            loaded = self._shape.load(back)
            if not self._shape.lossless:
                refuse_difference(data, write(self._shape.dump(loaded, Walk())))
            return data, loaded
        except Exception as error:  # noqa: BLE001 - see encode
            raise not_encodable(error, self._where) from cause_of(error)

    def _raw(self, value: Any) -> bytes:
        if type(value) not in self._shape.classes:
            raise Mismatch.of(value, self._shape.name)
        if len(value) > CHARACTERS_MAX:
            raise Mismatch(f"at most {CHARACTERS_MAX:,} characters or bytes", f"{len(value):,}")
        return value if self.media_type == _BYTES else _utf8(value)


def shape_for(annotation: object, *, where: str) -> Shape:
    """Build an annotation's shape, or say in terms of `where` what cannot be recorded."""
    try:
        return build(annotation)
    except Unsupported as unsupported:
        raise NotEncodable(
            where=where,
            path=f"${unsupported.path}",
            expected="an annotation whose values can be recorded",
            found=f"{unsupported.annotation}: {unsupported.reason}",
        ) from None


def refuse_difference(before: bytes, after: bytes) -> None:
    """Compare what was written with what the decoded value is written as.

    Raises:
        Mismatch: they differ, at the first path where they do.
    """
    if before != after:
        change = first_difference(read(before), read(after))
        mismatch = Mismatch(f"what was given ({_kind(change.old)})", f"{_kind(change.new)} after it was read back")
        mismatch.under(change.path[1:])
        raise mismatch


_WAYS_OUT = {
    "a JSON value": (
        "Annotate it as what it is: a dataclass, a pydantic model, a set, a tuple, Decimal, a date, bytes, a path. "
        "Make a list of a generator; give the name of a function, a client or a connection, never the thing itself."
    ),
    "a str as key": "Annotate it, such as dict[int, str]: without an annotation the keys are texts.",
    "a finite number": "Give None, or leave it out: JSON has neither NaN nor infinities.",
    "text that UTF-8 can hold": "Decode with errors='replace', or give the bytes: a lone surrogate has no UTF-8.",
}
"""What to do about what was expected, where it says more than that data is to be plain."""


def not_encodable(error: Exception, where: str) -> NotEncodable:
    """Translate whatever stopped a value from being written; values are never shown."""
    facts = _facts(error, "a value that can be read and written")
    hint = next((way for expected, way in _WAYS_OUT.items() if facts["expected"].startswith(expected)), None)
    return NotEncodable(where=where, **facts) if hint is None else NotEncodable(where=where, **facts, hint=hint)


def not_decodable(error: Exception, where: str) -> NotDecodable:
    """Translate whatever stopped bytes from being read; a ValueError is bad JSON or bad UTF-8."""
    if isinstance(error, ValueError):
        return NotDecodable(where=where, path="$", expected="JSON or text as it was stored", found=str(error)[:200])
    return NotDecodable(where=where, **_facts(error, "a value of the annotated type"))


def _facts(error: Exception, expected: str) -> dict[str, str]:
    if isinstance(error, Mismatch):
        return {"path": error.path, "expected": error.expected, "found": error.found}
    if isinstance(error, RecursionError):
        return {"path": "$", "expected": "a call stack with room left", "found": "a stack that is almost full"}
    return {"path": "$", "expected": expected, "found": f"{class_name(type(error))} while it was read"}


def cause_of(error: Exception) -> BaseException | None:
    """Keep the user's own exception as the cause; a mismatch is told in full by the message."""
    return error.__cause__ if isinstance(error, Mismatch) else error


def _kind(value: Json | object) -> str:
    return "nothing" if value is MISSING else class_name(type(value))


def _utf8(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return write(text)  # which says where the surrogate is
