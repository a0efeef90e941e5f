"""The words in which effects and lookups answer. Plain data; users import them from `milepost`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Applied(Generic[T]):
    """An effect's result together with the provider's own reference id."""

    result: T
    ref: str | None = None


def unwrapped(value: Any) -> Any:
    """Return an effect's result, with or without a reference beside it."""
    return value.result if isinstance(value, Applied) else value


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """A lookup's answer: the provider has it. `result` is what the effect would have returned."""

    result: T
    ref: str | None = None


@dataclass(frozen=True, slots=True)
class NotFound:
    """A lookup's answer: the provider does not have it and, `settle` having passed, never got it."""


@dataclass(frozen=True, slots=True)
class CannotTell:
    """A lookup's answer: nobody knows. Never taken for `NotFound`."""

    reason: str


class NotApplied(Exception):
    """Raise inside an effect when it is proven that nothing happened (a refusal before acceptance).

    Every other exception, a timeout and a crash mean *unknown*.
    """
