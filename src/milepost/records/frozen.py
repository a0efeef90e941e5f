"""Data classes that cost little to define and to make; those that nobody may change are frozen for the type checker.

A data class writes the methods that compare and show it in source and compiles them, class by class: two thirds of the
cost of one. Here all share them. At run time a frozen one would set each field through a function call: making it
takes three times as long. Journals make and read some by the step; strict mypy keeps anyone from changing them. For
what is hashed, or given to users, use a NamedTuple or a truly frozen dataclass.
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


@dataclass_transform(field_specifiers=(field,))
def slotted(cls: type[T]) -> type[T]:
    """Make a data class with slots whose fields may be changed."""
    return dataclass(slots=True, eq=False, repr=False)(_compared(cls))


def _compared(cls: type[T]) -> type[T]:
    """Let a class be compared and shown by its fields."""
    cls.__doc__ = cls.__doc__ or cls.__name__  # or a data class works its signature out, to be its docstring
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
