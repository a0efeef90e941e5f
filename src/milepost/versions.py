"""What produced a record, as versions: code, instructions, model and its parameters, tools. Reads source files only.

Called by `declare` when a function is declared, and by each start and resume for what a task was given.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from milepost.errors import BadOption
from milepost.records.canonical import canonical
from milepost.regular import read_regular

Function = Callable[..., Any]
_SHORT = 12
"""Hex digits of a digest kept as a version."""


def task_versions(
    where: str,
    own: Mapping[str, str],
    instructions: str | Path | None,
    model: str | None,
    parameters: Mapping[str, Any] | None,
    tools: Sequence[Any],
) -> Mapping[str, str]:
    """Return a task's versions as they are now. Raises: BadOption when its instructions cannot be read."""
    found = dict(own)
    if instructions is not None:
        found["instructions"] = _instructions_version(where, instructions)
    if model is not None:
        found["model"] = model if not parameters else f"{model} {_short(canonical(dict(parameters)))}"
    if tools:
        found["tools"] = _short(canonical([_tool(tool) for tool in tools]))
    return found


def code_versions(function: Function, version: str | None) -> dict[str, str]:
    """Return the version of a function's code: its syntax tree without decorators, and `version=`."""
    found = {"code": _code_digest(function)}
    if version is not None:
        found["version"] = version
    return found


def _code_digest(function: Function) -> str:
    try:
        tree = _parsed(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError, ValueError):
        code = getattr(function, "__code__", None)
        return _short(code.co_code if code is not None else repr(type(function)).encode())
    declared = tree.body[0]
    if isinstance(declared, (ast.FunctionDef, ast.AsyncFunctionDef)):
        declared.decorator_list = []
    return _short(ast.dump(tree, annotate_fields=False).encode("utf-8", "backslashreplace"))


def _parsed(source: str) -> ast.Module:
    """Parse, once more when the parser was disturbed.

    Python 3.11 keeps the parser's depth per process: a collection that parses on its own meanwhile raises
    SystemError though the source is good (https://github.com/python/cpython/issues/106905).
    """
    try:
        return ast.parse(source)
    except SystemError:
        return ast.parse(source)


def _instructions_version(where: str, instructions: str | Path) -> str:
    if isinstance(instructions, str):
        return _short(instructions.encode("utf-8", "backslashreplace"))
    try:
        return _short(read_regular(instructions))
    except OSError as error:
        raise BadOption(
            where=f"{where}, instructions=", reason=f"{instructions} cannot be read: {error.strerror}"
        ) from error


def _tool(tool: Any) -> Any:
    """Return what a model is told of a tool: a schema as it is, a function by name, signature and docstring."""
    if isinstance(tool, Mapping):
        return dict(tool)
    if callable(tool):
        return {
            "name": getattr(tool, "__name__", repr(tool)),
            "signature": _signature(tool),
            "doc": inspect.getdoc(tool),
        }
    return str(tool)


@cache
def _signature(tool: Function) -> str:
    return str(inspect.signature(tool))


def _short(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_SHORT]
