"""How the values of one annotation are written as JSON and read back: a `Shape`, made of smaller shapes.

Rule of this folder: `dump` checks the exact class at every depth and leaves no state out, `load` is its inverse. Where
user code takes part in loading (`lossless` is False), the codec dumps what was loaded again and compares.
No name of a class is ever read from data; which class is built is decided by the annotation alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from milepost.records.canonical import Json, Walk
from milepost.records.frozen import slotted

Dump = Callable[[Any, Walk], Json]
Load = Callable[[Any], Any]

NULL, ARRAY, OBJECT, TEXT = (frozenset((kind,)) for kind in (type(None), list, dict, str))
ANY_KIND = frozenset((type(None), bool, int, float, str, list, dict))


@slotted
class Shape:
    """One annotation's way to JSON and back.

    `classes` are the exact classes of the values it takes, `kinds` the Python classes of the JSON it writes: by
    them a union tells its members apart. `dump` and `load` raise `Mismatch`. `is_raw`: stored without JSON around
    it where it is the whole value.
    """

    name: str
    classes: frozenset[type]
    kinds: frozenset[type]
    dump: Dump
    load: Load
    lossless: bool = True
    immutable: bool = False
    holds_paths: bool = False
    is_raw: bool = False

    def take_flags(self, parts: list[Shape]) -> None:
        """Be lossless only as far as every part is, and hold paths if one does."""
        self.lossless = self.lossless and all(part.lossless for part in parts)
        self.holds_paths = self.holds_paths or any(part.holds_paths for part in parts)


UNTYPED = "a JSON value"  # the name of the shape of a value without annotation


def name_with(name: str, parts: list[Shape]) -> str:
    """Name a shape with its parts, as its annotation does: `list[int]`; parts without annotation are left out."""
    names = [part.name for part in parts]
    return name if not names or UNTYPED in names else f"{name}[{', '.join(names)}]"


class Unsupported(Exception):
    """An annotation that no shape can be built for: the annotation, the reason and where it stands."""

    def __init__(self, annotation: str, reason: str) -> None:
        super().__init__(annotation, reason)
        self.annotation = annotation
        self.reason = reason
        self.path = ""

    def under(self, piece: str) -> None:
        """Note that the annotation stands below `piece`, such as `.rows`."""
        self.path = piece + self.path
