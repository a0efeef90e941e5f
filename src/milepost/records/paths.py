"""Which files and secrets a value names: every path inside it, with its place, and every `Secret`.

Asked of outputs (a path there is a file to keep) and of arguments and inputs (a path there is a source), by the
protocol and the runtime. Knows nothing of the file system; goes where the codec goes: containers, dataclasses,
NamedTuples and pydantic models.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any, TypeVar

from milepost.records.canonical import DEPTH_MAX
from milepost.records.mismatch import at_index, at_key
from milepost.records.secret import Secret

T = TypeVar("T")

_LEAVES = frozenset((type(None), bool, int, float, str, bytes))


def find_paths(value: object) -> list[tuple[str, PurePath]]:
    """List every path inside a value as (JSON path, path), in a stable order; dict keys count too."""
    return list(_below("$", value, 0, PurePath))


def find_secrets(value: object) -> list[Secret]:
    """List every secret inside a value, in a stable order."""
    return [secret for _, secret in _below("$", value, 0, Secret)]


def _below(place: str, value: Any, depth: int, wanted: type[T]) -> Iterator[tuple[str, T]]:
    if isinstance(value, wanted):
        yield place, value
    elif type(value) not in _LEAVES and depth < DEPTH_MAX:
        for piece, part in _parts(value):
            yield from _below(place + piece, part, depth + 1, wanted)


def _parts(value: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(value, dict):
        return _dict_parts(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [(at_key(name), part) for name, part in zip(value._fields, value, strict=True)]
    if isinstance(value, list | tuple):
        return [(at_index(index), part) for index, part in enumerate(value)]
    if isinstance(value, set | frozenset):
        return [("[…]", part) for part in sorted(value, key=str) if type(part) not in _LEAVES]
    return [(at_key(name), getattr(value, name)) for name in _field_names(value)]


def _dict_parts(value: dict[Any, Any]) -> Iterator[tuple[str, Any]]:
    for key, part in value.items():
        piece = at_key(str(key))
        if type(key) not in _LEAVES:
            yield piece, key
        yield piece, part


def _field_names(value: Any) -> list[str]:
    if dataclasses.is_dataclass(value):
        return [field.name for field in dataclasses.fields(value)]
    if hasattr(type(value), "__pydantic_fields__") or hasattr(type(value), "model_fields"):
        return [*type(value).model_fields, *(value.__pydantic_extra__ or ())]
    return []
