"""Which tasks, steps and effects this process has declared, found by name on resume. Filled by the decorators."""

from __future__ import annotations

from collections.abc import Mapping
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
    """Remember a step or an effect; one declared again in the same place replaces the older."""
    _CALLS.setdefault(spec.name, {})[spec.where] = spec


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
