"""Annotations as the objects they name, also where they are written as text (`from __future__ import annotations`).

Looks names up where Python would: in the module, in the closure, and for a function or class defined inside a
function in that function's variables, as long as it is still running (it is, while a decorator is applied).
"""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Callable
from typing import Any

from milepost.errors import NotEncodable


def function_annotations(function: Callable[..., object], *, where: str) -> dict[str, Any]:
    """Resolve a function's annotations, `return` included; a parameter without one is absent.

    Raises:
        NotEncodable: a name cannot be found.
    """
    names = {**_enclosing_names(function.__qualname__), **_closure_names(function)}
    try:
        return typing.get_type_hints(function, localns=names or None, include_extras=True)
    except (NameError, SyntaxError, TypeError, AttributeError) as error:
        raise NotEncodable(
            where=where,
            path="$",
            expected="annotations whose names exist; define them before the function, at module level "
            "and not only under TYPE_CHECKING",
            found=f"{type(error).__name__}: {error}",
        ) from None


def class_annotations(cls: type) -> dict[str, Any]:
    """Resolve a class's annotations, its bases' included; raises NameError for a name that cannot be found."""
    names = _enclosing_names(cls.__qualname__)
    return typing.get_type_hints(cls, localns=names or None, include_extras=True)


def _closure_names(function: Callable[..., object]) -> dict[str, Any]:
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    if not isinstance(code, types.CodeType) or not cells:
        return {}
    return {name: cell.cell_contents for name, cell in zip(code.co_freevars, cells, strict=True) if _is_filled(cell)}


def _is_filled(cell: types.CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _enclosing_names(qualname: str) -> dict[str, Any]:
    """Give the variables of the running functions around a definition, by its qualified name `outer.<locals>.f`."""
    outer, local, _ = qualname.rpartition(".<locals>.")
    if not local:
        return {}
    names: dict[str, Any] = _enclosing_names(outer)
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_qualname == outer:
            return {**names, **frame.f_locals}
        frame = frame.f_back
    return names
