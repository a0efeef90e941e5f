"""Functions and tasks by name, so that another process can import them again: a drill sends names, never objects."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from milepost.errors import MisuseError


@dataclass(frozen=True, slots=True)
class Named:
    """Where something stands: module and file as they are here, and its name in there."""

    module: str
    file: str
    name: str


def named(thing: Any, what: str) -> Named:
    """Return where a function or task is declared.

    Raises: MisuseError when it was made inside a function, where no other process can find it.
    """
    function = thing.spec.function if hasattr(thing, "spec") else thing
    name = getattr(function, "__qualname__", "")
    module = sys.modules.get(getattr(function, "__module__", ""))
    file = getattr(module, "__file__", None)
    if not name or "<" in name or module is None or file is None:
        reason = "a drill imports it in new processes: declare it with `def` at the top of a module"
        raise MisuseError(reason=f"{what} {name or repr(thing)} cannot be found again: {reason}")
    called = Path(file).stem if module.__name__ == "__main__" else module.__name__
    return Named(called, str(Path(file).resolve()), name)


def by_text(text: str, what: str) -> Named:
    """Return what MODULE:FUNCTION or FILE.py:FUNCTION names, imported to see that it is there. Raises: MisuseError."""
    place, _, name = text.rpartition(":")
    if not place or not name:
        raise MisuseError(reason=f"{what} {text!r}: expected MODULE:FUNCTION or FILE.py:FUNCTION")
    try:
        found = Named(*_place(place), name)
        load(found)
    except (ImportError, AttributeError, OSError) as error:
        raise MisuseError(reason=f"{what} {text!r} cannot be imported: {error}") from error
    return found


def _place(place: str) -> tuple[str, str]:
    """Return module and file of a place. Raises: ImportError."""
    if place.endswith(".py"):
        path = Path(place).resolve()
        if str(path.parent) not in sys.path:
            sys.path.insert(0, str(path.parent))
        return path.stem, str(path)
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    file = getattr(importlib.import_module(place), "__file__", None)
    if file is None:
        raise ImportError(f"{place} has no file")
    return place, file


def load(what: Named) -> Any:
    """Import it. Raises: what its module raises, AttributeError."""
    found: Any = _module(what)
    for part in what.name.split("."):
        found = getattr(found, part)
    return found


def _module(what: Named) -> ModuleType:
    there = sys.modules.get(what.module)
    if there is not None and getattr(there, "__file__", None) == what.file:
        return there
    try:
        spec = importlib.util.find_spec(what.module)
    except (ImportError, ValueError):
        spec = None
    if spec is not None and spec.origin == what.file:
        return importlib.import_module(what.module)
    return _from_file(what)


def _from_file(what: Named) -> ModuleType:
    spec = importlib.util.spec_from_file_location(what.module, what.file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{what.file} cannot be imported")
    module = sys.modules[what.module] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
