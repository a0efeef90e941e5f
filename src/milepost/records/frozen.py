"""Data classes that are frozen for the type checker only.

At run time a frozen dataclass sets each field through a function call: making one takes three times as long, and
defining its class twice as long. Journals make and read some by the step; strict mypy keeps anyone from changing
them. For what is hashed, use a NamedTuple or a truly frozen dataclass.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Make a data class with slots."""
    return dataclass(slots=True)(cls)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def frozen_by_name(cls: type[T]) -> type[T]:
    """Make a data class with slots whose fields are given by name."""
    return dataclass(slots=True, kw_only=True)(cls)
