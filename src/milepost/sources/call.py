"""The result of a user's function as a source: anything that can be asked and gives JSON data, bytes or None.

Recorded by its importable name, so that a resume can ask it again. A name alone never runs anything: what is called
is a function declared as a source in this process, or one defined under exactly that name in that module.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from milepost.errors import BadOption, NotEncodable
from milepost.records.canonical import canonical
from milepost.sources.naming import cannot_tell, name_of
from milepost.sources.observation import Descriptor, Observation, absent, content_fingerprint

_declared: dict[str, Callable[[], object]] = {}  # name -> the function last declared under it


@dataclass(frozen=True, slots=True)
class Call:
    """A function without arguments, asked for JSON data or bytes; None means there is nothing.

    A module-level `def`: lambdas, functions inside functions and bound methods cannot be found again on resume.
    """

    function: Callable[[], object]

    def __post_init__(self) -> None:
        _check(self.function)
        _declared[_recorded_name(self.function)] = self.function

    def descriptor(self) -> Descriptor:
        """Return the source as data."""
        return {"kind": "call", "name": _recorded_name(self.function)}


def observe_call(descriptor: Descriptor, seal_key: bytes | None) -> Observation:
    """Call the function a descriptor names and look at its result.

    Raises:
        BadOption: it returned something that is neither JSON data nor bytes.
        SourceUnavailable: it is not there any more, or it raised.
    """
    function = _declared.get(descriptor["name"]) or _imported(descriptor)
    try:
        result = function()
    except Exception as error:
        raise cannot_tell(descriptor, error) from error
    if result is None:
        return absent(descriptor)
    data = _encoded(result, descriptor)
    kind = "call bytes" if isinstance(result, bytes) else "call"
    fingerprint = content_fingerprint(kind, hashlib.sha256(data).digest(), seal_key)
    return Observation(descriptor, fingerprint, len(data))


def _check(function: object) -> None:
    where = f"Call({getattr(function, '__qualname__', type(function).__name__)})"
    if not inspect.isfunction(function):
        raise BadOption(where=where, reason=f"expected a function defined with def, found {type(function).__name__}")
    if "<" in function.__qualname__:
        raise BadOption(where=where, reason="a lambda or a function inside a function cannot be found again on resume")
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise BadOption(
            where=where, reason="expected a function that returns its result, found a coroutine or generator"
        )
    required = [p.name for p in inspect.signature(function).parameters.values() if _is_required(p)]
    if required:
        raise BadOption(where=where, reason=f"it is called without arguments, but needs {', '.join(required)}")


def _is_required(parameter: inspect.Parameter) -> bool:
    several = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and not several


def _recorded_name(function: Callable[[], object]) -> str:
    return f"{_module_name(function.__module__)}:{function.__qualname__}"


def _module_name(name: str) -> str:
    """Return the name a module can be imported by; a script run as `__main__` is known by its file's name."""
    if name != "__main__":
        return name
    main = sys.modules["__main__"]
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is not None:
        return str(spec.name)
    return Path(file).stem if file else name


def _imported(descriptor: Descriptor) -> Callable[[], object]:
    module_name, _, qualname = descriptor["name"].partition(":")
    try:
        found: Any = importlib.import_module(module_name)
        for part in qualname.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise cannot_tell(descriptor, error) from error
    if not inspect.isfunction(found) or _recorded_name(found) != descriptor["name"]:
        raise cannot_tell(descriptor, f"{module_name} defines no function {qualname}")
    return found


def _encoded(result: object, descriptor: Descriptor) -> bytes:
    if isinstance(result, bytes):
        return result
    try:
        return canonical(result)  # type: ignore[arg-type]  # it checks what it is given
    except NotEncodable as error:
        reason = f"its result, at {error.path}: expected {error.expected} or bytes, found {error.found}"
        raise BadOption(where=f"Call({name_of(descriptor)})", reason=reason) from error
