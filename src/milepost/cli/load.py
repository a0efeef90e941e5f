"""Finds the task a target names: FILE.py:TASK or MODULE:TASK; a file with one task may leave `:TASK` out.

Importing runs the user's module. What goes wrong there is told with its file and line. Called by run, resume, map.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias, TypeVar

from milepost.api import AsyncTask, Task
from milepost.cli.output import only_results_on_stdout
from milepost.errors import MilepostError, UnknownTask
from milepost.regular import kind_at

T = TypeVar("T")
_NOT_THE_USERS = ("<frozen", *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")))
AnyTask: TypeAlias = Task[..., Any] | AsyncTask[..., Any]


def load_task(target: str) -> AnyTask:
    """Import a target's module and return its task. Raises: UnknownTask, and what declaring the task raises."""
    place, name = _split(target)
    module = _file(target, Path(place)) if _is_file(place) else _module(target, place)
    return _named(target, module, name) if name else _only(target, module)


def _split(target: str) -> tuple[str, str]:
    place, colon, name = target.rpartition(":")
    return (place, name) if colon and not name.endswith(".py") else (target, "")


def _is_file(place: str) -> bool:
    return place.endswith(".py") or "/" in place


# ── importing ───────────────────────────────────────────────────────────────────────────────────────


def _file(target: str, path: Path) -> ModuleType:
    try:
        kind = kind_at(str(path))
    except OSError as error:
        raise UnknownTask(target=target, reason=f"it cannot be looked at: {error.strerror}") from None
    if kind != "file":
        raise UnknownTask(target=target, reason=f"it is a {kind}" if kind else f"there is no file {path}")
    if path.suffix != ".py":
        raise UnknownTask(target=target, reason=f"expected a file that ends in .py, found {path.name}")
    path = path.resolve()
    parts, root = [path.stem], path.parent
    while (root / "__init__.py").is_file():
        parts, root = [root.name, *parts], root.parent
    if parts[-1] == "__init__":
        parts.pop()
    _look_in(root)
    name = ".".join(parts)
    if len(parts) > 1:
        return _imported(target, lambda: importlib.import_module(name))
    return _alone(target, path, name)


def _alone(target: str, path: Path, name: str) -> ModuleType:
    there = sys.modules.get(name)
    if there is not None and getattr(there, "__file__", None) == str(path):
        return there
    if there is not None:
        raise UnknownTask(target=target, reason=f"another module is called {name!r} already; rename the file")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    loader = spec.loader
    try:
        _imported(target, lambda: loader.exec_module(module))
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _module(target: str, name: str) -> ModuleType:
    if not all(name.split(".")):
        found = "it is a folder" if os.path.isdir(name) else "it names no module"
        raise UnknownTask(target=target, reason=found)
    _look_in(Path.cwd())
    try:
        return _imported(target, lambda: importlib.import_module(name))
    except UnknownTask as error:
        missing = getattr(error.__cause__, "name", None)
        if isinstance(error.__cause__, ModuleNotFoundError) and missing and f"{name}.".startswith(f"{missing}."):
            raise UnknownTask(target=target, reason=f"there is no module {missing!r} here") from None
        raise


def _look_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _imported(target: str, load: Callable[[], T]) -> T:
    """Run a module's code; what it prints goes to stderr, what it raises becomes UnknownTask with file and line."""
    try:
        with only_results_on_stdout():
            return load()
    except (MilepostError, KeyboardInterrupt):
        raise
    except BaseException as error:
        reason = f"importing it failed{_at(error)}: {_text(error)}"
        raise UnknownTask(target=target, reason=reason, hint=_hint(error)) from error


def _hint(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"Install {error.name!r} where this `milepost` runs, or start it from the folder that module is in."
    return "Mend the file; the lines above say where it stopped."


def _at(error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f" at {error.filename}, line {error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    own = [frame for frame in frames if not frame.filename.startswith(_NOT_THE_USERS)]
    return f" at {own[-1].filename}, line {own[-1].lineno}" if own else ""


def _text(error: BaseException) -> str:
    first = traceback.TracebackException.from_exception(error).format_exception_only()
    return list(first)[-1].strip()[:300]


# ── finding ─────────────────────────────────────────────────────────────────────────────────────────


def _tasks(module: ModuleType) -> dict[str, AnyTask]:
    """Return the tasks a module declares; those it only imports count when it declares none."""
    found = {name: value for name, value in vars(module).items() if isinstance(value, (Task, AsyncTask))}
    own = {name: value for name, value in found.items() if value.spec.function.__module__ == module.__name__}
    return own or found


def _named(target: str, module: ModuleType, name: str) -> AnyTask:
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if isinstance(found, (Task, AsyncTask)):
        return found
    what = f"there is no {name!r} in it" if found is None else f"{name!r} is no task but {type(found).__name__}"
    raise UnknownTask(target=target, reason=f"{what}; {_listed(module)}")


def _only(target: str, module: ModuleType) -> AnyTask:
    tasks = _tasks(module)
    if len(tasks) != 1:
        raise UnknownTask(target=target, reason=f"it does not say which task; {_listed(module)}")
    return next(iter(tasks.values()))


def _listed(module: ModuleType) -> str:
    names = ", ".join(_tasks(module))
    return f"its tasks are: {names}" if names else "it has no function decorated with @task"
