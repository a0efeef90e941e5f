"""Which steps and effects a task's plan names, found in its code without running it: its role definition.

Called by `milepost map`, and wherever a promotion is made or looked at.
"""

from __future__ import annotations

from inspect import getattr_static
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

from milepost.protocol.role import Role, role_of
from milepost.protocol.spec import EffectSpec, StepSpec, TaskSpec

_EMPTY = CellType()


def declared_role(task: TaskSpec) -> Role:
    """Return a task's role definition as it is declared now."""
    return role_of(task, named_calls(task.function))


def named_calls(function: Any) -> list[StepSpec | EffectSpec]:
    """Return the steps and effects a body names, in its order, each followed by what its own body names.

    Plain functions that are named are looked into as well; nothing is looked into twice.
    """
    found: list[StepSpec | EffectSpec] = []
    _add_named(function, found, set())
    return found


def _add_named(body: Any, found: list[StepSpec | EffectSpec], seen: set[int]) -> None:
    if id(body) in seen or not isinstance(body, FunctionType):
        return
    seen.add(id(body))
    for value in _named_by(body):
        spec = getattr_static(value, "spec", None)  # what the names stand for is anybody's: nothing of it is run
        if not isinstance(spec, (StepSpec, EffectSpec)):
            _add_named(value, found, seen)
        elif all(spec is not other for other in found):
            found.append(spec)
            _add_named(spec.function, found, seen)


def _codes(code: CodeType) -> list[CodeType]:
    """Return the code of a body and of the functions inside it."""
    return [code, *(inner for const in code.co_consts if isinstance(const, CodeType) for inner in _codes(const))]


def _named_by(function: FunctionType) -> list[Any]:
    """Return what a body's names stand for: around it, in its module, and as attributes of modules it names."""
    names = {name: None for code in _codes(function.__code__) for name in code.co_names}
    there = [function.__globals__[name] for name in names if name in function.__globals__]
    around = [cell.cell_contents for cell in function.__closure__ or () if cell != _EMPTY]
    inside = [vars(m)[name] for m in there if isinstance(m, ModuleType) for name in names if name in vars(m)]
    return [*there, *inside, *around]
