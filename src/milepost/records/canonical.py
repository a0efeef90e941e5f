"""JSON as Milepost stores it: sorted keys, no spaces, UTF-8, one text for one value; and its digest.

Numbers keep their class (1 is not 1.0, -0.0 is not 0.0); NaN, infinities and lone surrogates do not exist here.
Never knows annotations (see `codec`); everything that is sealed, digested or compared comes through here.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias, Union

from milepost.errors import NotEncodable
from milepost.records.mismatch import Mismatch, at_index, at_key
from milepost.records.shown import readable

Json: TypeAlias = Union[bool, int, float, str, list["Json"], dict[str, "Json"], None]  # noqa: UP007 - recursive

DEPTH_MAX = 100  # lists and objects inside each other
ITEMS_MAX = 10_000_000  # list items and object keys in one value
CHARACTERS_MAX = 1 << 30  # of all long texts in one value
LONG_TEXT = 1 << 16  # characters from which a text is counted against CHARACTERS_MAX

_TOO_DEEP = f"at most {DEPTH_MAX} levels of nesting"
_SCALARS = frozenset((type(None), bool, int, float))

# Circles and depth are refused by `Walk` before anything is written, so the encoder need not look again.
_encoder = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, sort_keys=True, separators=(",", ":")
)


def _prepared() -> Callable[[Any], str]:
    """Return `_encoder.encode`, with the C encoder built once: building it costs more than a small value."""
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return _encoder.encode
    pieces = make(None, _encoder.default, json.encoder.encode_basestring, None, ":", ",", True, False, False)
    return lambda value: "".join(pieces(value, 0))


encode_text = _prepared()
"""Write a value as canonical text; for values that are known to be JSON's own classes."""


_read: Callable[[str, int], tuple[Json, int]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
"""Read what we have just written; half the time of `json.loads`, which looks for encodings and spaces."""


class Walk:
    """The bounds of one walk through a value: a list that contains itself ends here, not in a RecursionError."""

    depth = 0
    items = 0
    characters = 0

    def enter(self, count: int) -> None:
        """Count one container of `count` items in; whoever enters lowers `depth` again when it is through."""
        self.depth += 1
        self.items += count
        if self.depth > DEPTH_MAX:
            raise Mismatch(_TOO_DEEP, "a value nested deeper, or one that contains itself")
        if self.items > ITEMS_MAX:
            raise Mismatch(f"at most {ITEMS_MAX:,} items in one value", f"at least {self.items:,}")

    def weigh(self, count: int) -> None:
        """Count a long text of `count` characters; short ones are counted as items."""
        self.characters += count
        if self.characters > CHARACTERS_MAX:
            raise Mismatch(f"at most {CHARACTERS_MAX:,} characters in one value", f"{self.characters:,}")


def canonical(value: Json) -> bytes:
    """Write a JSON value as its one canonical text.

    Raises:
        NotEncodable: a class JSON does not have (subclasses and tuples included), a key that is no str, NaN,
            an infinity, a lone surrogate, or a value past a bound, with its exact path.
    """
    try:
        check_exact(value, Walk())
        return write(value)
    except Mismatch as mismatch:
        facts = {"path": mismatch.path, "expected": mismatch.expected, "found": mismatch.found}
        raise NotEncodable(where="a JSON value", **facts) from None


def parse(data: bytes) -> Json:
    """Read JSON that others may have written.

    Raises:
        ValueError: bad UTF-8, bad JSON, a key given twice, NaN or a number too large, a lone surrogate, or
            nesting deeper than DEPTH_MAX; with the reason.
    """
    text = data.decode("utf-8")
    try:
        value = _decoded(text)
    except RecursionError:
        raise ValueError(f"nested too deep: {_TOO_DEEP}") from None
    if _may_be_deep(data) and _deeper_than(value, DEPTH_MAX):
        raise ValueError(f"nested too deep: {_TOO_DEEP}")
    if _may_hold_surrogate(data):
        encode_text(value).encode("utf-8")
    return value


def _may_be_deep(data: bytes) -> bool:
    """Count what opens a container; that there is only one is found ten times as fast."""
    if b"[" not in data and data.find(b"{", 1) < 0:
        return False
    return data.count(b"[") + data.count(b"{") > DEPTH_MAX


def _may_hold_surrogate(data: bytes) -> bool:
    """Look for what is an escaped surrogate; one character is found ten times as fast as two."""
    return b"\\" in data and (b"\\ud" in data or b"\\uD" in data)


def _decoded(text: str) -> Json:
    """Read strictly; the decoder's own way, which looks for blanks around the value, only where some may be."""
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        end = -1
    return value if end == len(text) else _strict.decode(text)


def read(data: bytes) -> Json:
    """Read JSON that `write` has just written; `parse` is for everything else."""
    value: Json = _read(data.decode("utf-8"), 0)[0]
    return value


def digest(data: bytes) -> str:
    """Give the SHA-256 of `data`: 64 lower-case hexadecimal characters."""
    return hashlib.sha256(data).hexdigest()


def write(value: Json) -> bytes:
    """Write a value whose classes are known to be exactly JSON's and whose depth is bounded.

    Raises:
        Mismatch: NaN, an infinity, a lone surrogate or an int of more than 4,300 digits, with its path.
    """
    try:
        return encode_text(value).encode("utf-8")
    except ValueError:
        _explain(value)
        raise


def write_and_read(value: Json) -> tuple[bytes, Json]:
    """Write as `write` does and read it back; long texts are shared with `value`, not held in memory twice.

    Raises:
        Mismatch: as `write`.
    """
    try:
        text = encode_text(value)
        back: Json = _read(text, 0)[0]
        if len(text) > LONG_TEXT:
            back = _sharing_texts(value, back)
        return text.encode("utf-8"), back
    except ValueError:
        _explain(value)
        raise


def _sharing_texts(written: Any, back: Any) -> Json:
    """Give `back` with each text that equals the written one replaced by it."""
    if type(back) is str:
        return written if written == back else back
    if type(back) is list:
        return [_sharing_texts(old, new) for old, new in zip(written, back, strict=True)]
    if type(back) is dict:
        return {key: _sharing_texts(written[key], new) for key, new in back.items()}
    return back  # type: ignore[no-any-return]


def check_exact(value: object, walk: Walk) -> Json:
    """Return `value` itself if it consists of nothing but exact JSON classes.

    Raises:
        Mismatch: another class, or a bound, with its path.
    """
    if type(value) is str:
        if len(value) > LONG_TEXT:
            walk.weigh(len(value))
    elif type(value) is dict:
        _check_object(value, walk)
    elif type(value) is list:
        _check_array(value, walk)
    elif type(value) not in _SCALARS:
        raise Mismatch.of(value, "a JSON value (None, bool, int, float, str, list, dict)")
    return value  # type: ignore[return-value]


def _check_object(value: dict[Any, Any], walk: Walk) -> None:
    walk.enter(len(value))
    for key, item in value.items():
        if type(key) is not str:
            raise Mismatch.of(key, "a str as key")
        if type(item) not in _SCALARS:
            try:
                check_exact(item, walk)
            except Mismatch as mismatch:
                mismatch.under(at_key(key))
                raise
    walk.depth -= 1


def _check_array(value: list[Any], walk: Walk) -> None:
    walk.enter(len(value))
    for index, item in enumerate(value):
        if type(item) not in _SCALARS:
            try:
                check_exact(item, walk)
            except Mismatch as mismatch:
                mismatch.under(at_index(index))
                raise
    walk.depth -= 1


def _explain(value: Json) -> None:
    """Find what `write` stumbled over and raise it with its path; only called after it did."""
    if isinstance(value, dict):
        for key in sorted(value):
            _explain_below(key, at_key(readable(key)))
            _explain_below(value[key], at_key(readable(key)))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _explain_below(item, at_index(index))
    else:
        _explain_scalar(value)


def _explain_below(value: Json, piece: str) -> None:
    try:
        _explain(value)
    except Mismatch as mismatch:
        mismatch.under(piece)
        raise


def _explain_scalar(value: bool | int | float | str | None) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise Mismatch("a finite number", str(value))
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            found = f"the lone surrogate {value[error.start]!a} at character {error.start}"
            raise Mismatch("text that UTF-8 can hold", found) from None
    if isinstance(value, int):
        try:
            str(value)
        except ValueError:
            raise Mismatch("an int of at most 4,300 digits", "a longer int") from None


def _deeper_than(value: Json, depth: int) -> bool:
    level: list[Any] = [value]
    for _ in range(depth):
        level = [item for parent in level for item in _children(parent)]
        if not level:
            return False
    return True


def _children(value: Any) -> list[Any]:
    items = value.values() if type(value) is dict else value if type(value) is list else ()
    return [item for item in items if type(item) is dict or type(item) is list]


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:40]} is too large")
    return number


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice[:60]!r} is given twice")
    return result


_strict = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
_scan: Callable[[str, int], tuple[Json, int]] = _strict.scan_once  # type: ignore[attr-defined]
