"""Which tasks, steps and effects this process has declared, found by name on resume. Filled by the decorators."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from types import FunctionType
from typing import Any

from milepost.errors import AmbiguousTask
from milepost.protocol.keys import name_in
from milepost.protocol.spec import EffectSpec, StepSpec, TaskSpec

_TASKS: dict[str, dict[str, TaskSpec]] = {}
_CALLS: dict[str, dict[str, StepSpec | EffectSpec]] = {}


def register_task(spec: TaskSpec) -> None:
    """Remember a task; one declared again in the same place replaces the older."""
    _TASKS.setdefault(spec.name, {})[spec.where] = spec


def register_call(spec: StepSpec | EffectSpec) -> None:
    """Remember a step or an effect; one declared again in the same place replaces the older.

    Of one function declared with other options both are kept: an open intent could be of either, and nobody guesses.
    """
    by_where = _CALLS.setdefault(spec.name, {})
    older = by_where.get(spec.where)
    if older is not None and older.function is not spec.function:
        by_where.pop(spec.where + _OTHER, None)
    elif older is not None and _means_other(older, spec):
        by_where[spec.where + _OTHER] = older
    by_where[spec.where] = spec


_OTHER = " with other options"
_ASKED_OF: dict[type, tuple[str, ...]] = {
    StepSpec: ("versions",),
    EffectSpec: ("versions", "provider", "lookup", "settle", "key_lifetime", "rejected", "scope", "key"),
}
"""What a resume asks of a declaration before its plan runs."""


def _means_other(one: StepSpec | EffectSpec, other: StepSpec | EffectSpec) -> bool:
    """Say whether two declarations of one function differ in what a resume asks of them."""
    names = _ASKED_OF[type(one)]
    return type(one) is not type(other) or not all(_same(getattr(one, n), getattr(other, n)) for n in names)


def _same(one: object, other: object) -> bool:
    """Compare options; a function made twice by the same line over the same things is the same."""
    if not (isinstance(one, FunctionType) and isinstance(other, FunctionType)):
        return one == other
    return one.__code__ is other.__code__ and all(a is b for a, b in zip_longest(_held(one), _held(other)))


def _held(function: FunctionType) -> list[object]:
    return [*(cell.cell_contents for cell in function.__closure__ or ()), *(function.__defaults__ or ())]


def check_unambiguous(spec: TaskSpec) -> None:
    """Refuse two tasks of one name, between which a resume could not tell. Raises: AmbiguousTask.

    Tasks declared inside functions (in tests, mostly) replace each other and are left out.
    """
    if "<locals>" in spec.where:
        return
    others = [where for where in _TASKS.get(spec.name, {}) if where != spec.where and "<locals>" not in where]
    if others:
        raise AmbiguousTask(name=spec.name, first=others[0], second=spec.where)


def spec_of(path: str, versions: Mapping[str, Any]) -> StepSpec | EffectSpec | None:
    """Return what is declared under a path's name; of several the only one with this code, else None.

    Two that differ in nothing but where they are declared may ask different providers: nobody guesses which.
    """
    declared = list(_CALLS.get(name_in(path), {}).values())
    if len(declared) > 1:
        declared = [spec for spec in declared if spec.versions.get("code") == versions.get("code")]
    return declared[0] if len(declared) == 1 else None


def declared_calls(module: str) -> list[StepSpec | EffectSpec]:
    """Return what one module declared, in order of declaration."""
    return [spec for by_where in _CALLS.values() for where, spec in by_where.items() if where.startswith(f"{module}:")]
