"""Reads `name=value` as the inputs of a task, by its annotations: JSON where that fits, else the text itself."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from milepost.errors import BadInput, NotDecodable
from milepost.protocol.spec import TaskSpec
from milepost.records.annotations import function_annotations
from milepost.records.codec import Codec

SHOWN_MAX = 80
"""Characters of a refused value that its error shows."""


def parse_inputs(task: TaskSpec, given: Sequence[str]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return positional and keyword arguments for a task.

    Raises: BadInput naming the input, the expected type and what was found.
    """
    parameters = inspect.signature(task.function).parameters
    hints = function_annotations(task.function, where=f"task {task.name}, inputs")
    texts = _texts(task, given)
    known = [p for p in parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    rest = next((p for p in parameters.values() if p.kind is p.VAR_KEYWORD), None)
    bound: dict[str, Any] = {p.name: _value(task, p, hints, texts.pop(p.name)) for p in known if p.name in texts}
    _refuse_missing(task, known, hints, bound)
    if rest is not None:
        bound[rest.name] = {name: _value(task, rest, hints, text) for name, text in texts.items()}
    elif texts:
        raise BadInput(task=task.name, name=next(iter(texts)), reason=f"it has no such input; {_listed(known, hints)}")
    return task.arguments.spread(bound)


def _texts(task: TaskSpec, given: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in given:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise BadInput(task=task.name, name=word[:SHOWN_MAX], reason="expected name=value")
        if name in found:
            raise BadInput(task=task.name, name=name, reason="it is given twice")
        found[name] = text
    return found


def _value(task: TaskSpec, parameter: inspect.Parameter, hints: Mapping[str, Any], text: str) -> Any:
    hint = hints.get(parameter.name, Any)
    codec: Codec[Any] = Codec(hint, where=f"task {task.name}, input {parameter.name}")
    try:
        return _decoded(codec, text)
    except NotDecodable as error:
        if isinstance(hint, type) and issubclass(hint, Enum) and text in (known := {str(m.value): m for m in hint}):
            return known[text]
        where = "" if error.path == "$" else f" (at {error.path}: expected {error.expected}, found {error.found})"
        shown = text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "…"
        reason = f"expected {type_name(hint)}, found {shown!r}{where}"
        raise BadInput(task=task.name, name=parameter.name, reason=reason) from None


def _decoded(codec: Codec[Any], text: str) -> Any:
    """Try the text as JSON, then as itself. Raises: NotDecodable for whichever says more."""
    data = text.encode("utf-8", "surrogateescape")
    if codec.media_type != "application/json":
        return codec.decode(data)
    try:
        return codec.decode(data)
    except NotDecodable as as_json:
        try:
            return codec.decode(json.dumps(text).encode("utf-8"))
        except NotDecodable as as_text:
            raise (as_text if as_json.path == "$" else as_json) from None


def _refuse_missing(
    task: TaskSpec, known: Sequence[inspect.Parameter], hints: Mapping[str, Any], bound: Mapping[str, Any]
) -> None:
    for parameter in known:
        if parameter.default is parameter.empty and parameter.name not in bound:
            expected = f"it is missing; expected {parameter.name}={type_name(hints.get(parameter.name, Any))}"
            raise BadInput(task=task.name, name=parameter.name, reason=expected)


def type_name(hint: Any) -> str:
    """Say an annotation as its author wrote it."""
    return "JSON" if hint is Any else inspect.formatannotation(hint)


def _listed(known: Sequence[inspect.Parameter], hints: Mapping[str, Any]) -> str:
    names = ", ".join(f"{p.name} ({type_name(hints.get(p.name, Any))})" for p in known)
    return f"its inputs are: {names}" if names else "it takes none"
