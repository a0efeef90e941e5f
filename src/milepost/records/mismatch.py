"""The one exception with which the codec's parts tell where a value does not fit, and why.

It travels from the inside out: whoever catches it adds the piece of the path it knows and raises it on.
It never leaves this floor: `codec`, `arguments` and `canonical` turn it into `NotEncodable` or `NotDecodable`.
"""

from __future__ import annotations

import json
import types

from milepost.records.shown import cut

_NAME = type.__dict__["__qualname__"]
_MODULE = type.__dict__["__module__"]
_KEY_SHOWN_MAX = 60  # characters of a key in a path
_PIECES_SHOWN_MAX = 20  # keys and indices in a path; of a deeper one the middle is counted


class Mismatch(Exception):
    """A value that does not fit: `path` (JSON path, grows outwards), `expected`, `found`."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(expected, found)
        self.expected = expected
        self.found = found
        self._pieces: list[str] = []

    @classmethod
    def of(cls, value: object, expected: str) -> Mismatch:
        """Say that `value` is of the wrong class; never calls the value's own code, never shows its content."""
        return cls(expected, found=class_name(type(value)))

    def under(self, piece: str) -> None:
        """Note that all of this happened below `piece`, such as `.rows` or `[1]`."""
        self._pieces.append(piece)

    @property
    def path(self) -> str:
        """Return the JSON path from the whole value to the part that does not fit."""
        pieces = self._pieces[::-1]
        if len(pieces) > _PIECES_SHOWN_MAX:
            half = _PIECES_SHOWN_MAX // 2
            pieces = [*pieces[:half], f"…({len(pieces) - 2 * half} more)…", *pieces[-half:]]
        return "$" + "".join(pieces)


def at_key(key: str) -> str:
    """Give the piece of a JSON path for an object's key: `.name`, or `["any text"]`, cut at 60 characters."""
    if key.isidentifier():
        return f".{key}"
    return f"[{json.dumps(cut(key, _KEY_SHOWN_MAX))}]"


def at_index(index: int) -> str:
    """Give the piece of a JSON path for an array's item."""
    return f"[{index}]"


def class_name(cls: type) -> str:
    """Name a class for people, with its module unless it is built in; a hostile metaclass is not asked."""
    name: str = _NAME.__get__(cls)
    module = _MODULE.__get__(cls)
    if cls is types.NoneType:
        return "None"
    return name if module == "builtins" else f"{module}.{name}"
