"""Data classes that are frozen for the type checker only.

At run time a frozen dataclass sets each field through a function call: making one takes three times as long, and
defining its class twice as long. Journals make and read some by the step; strict mypy keeps anyone from changing
them. For what is hashed, use a NamedTuple or a truly frozen dataclass.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Make a data class with slots."""
    return dataclass(slots=True, eq=False, repr=False)(_compared(cls))


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def frozen_by_name(cls: type[T]) -> type[T]:
    """Make a data class with slots whose fields are given by name."""
    return dataclass(slots=True, kw_only=True, eq=False, repr=False)(_compared(cls))


def _compared(cls: type[T]) -> type[T]:
    """Let a class be compared and shown by its fields.

    A data class would write these two in source and compile them, class by class: two thirds of the cost of one.
    """
    members: dict[str, Any] = {"__eq__": _equal, "__repr__": _shown, "__hash__": None}
    for name, member in members.items():
        if name not in cls.__dict__:
            setattr(cls, name, member)
    return cls


def _equal(self: Any, other: object) -> bool:
    if other.__class__ is not self.__class__:
        return NotImplemented  # type: ignore[no-any-return]
    return _values(self) == _values(other)


def _values(one: Any) -> tuple[Any, ...]:
    return tuple(getattr(one, f.name) for f in fields(one) if f.compare)


def _shown(self: Any) -> str:
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{self.__class__.__qualname__}({shown})"
