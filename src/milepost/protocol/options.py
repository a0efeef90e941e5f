"""What the options of a decorator have to be, whichever it is: functions, lists, names, texts. Pure.

Called by `declare`, with `where` to begin each message. Raises: BadOption, BadName.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from milepost.errors import BadOption
from milepost.protocol.keys import Key, checked_step_name
from milepost.protocol.spec import Spec, TaskSpec
from milepost.records.annotations import function_annotations
from milepost.records.outside import is_text

Function = Callable[..., Any]


def refuse_unknown(where: str, names: Iterable[str]) -> None:
    """Refuse options there are none of."""
    for name in sorted(names):
        raise BadOption(where=f"{where}, {name}=", reason="there is no such option")


def declared_name(kind: str, function: Function, name: str | None) -> str:
    """Return the name given, else the function's. Raises: BadName; BadOption for what is no function."""
    declared = getattr(function, "spec", None)
    if isinstance(declared, (Spec, TaskSpec)):
        what = type(declared).__name__.removesuffix("Spec").lower()
        reason = f"expected a plain function, found the {what} {declared.name}: a function is one of the three"
        raise BadOption(where=f"@{kind}", reason=reason)
    if not callable(function) or not hasattr(function, "__qualname__"):
        raise BadOption(where=f"@{kind}", reason=f"expected a function, found {type(function).__name__}")
    return checked_step_name(kind, function.__name__ if name is None else name)


def refuse_generator(function: Function, where: str) -> None:
    """Refuse a function that would give its output piece by piece."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise BadOption(where=where, reason="a generator has no one output; return a list")


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def check_key_parameter(function: Function, where: str) -> None:
    """Refuse an effect whose function would take no key, or take it for something else."""
    first = next(iter(inspect.signature(function).parameters.values()), None)
    hints = function_annotations(function, where=where)
    if first is not None and first.kind in _POSITIONAL and hints.get(first.name) is Key:
        return
    found = "no parameter" if first is None else str(first)
    raise BadOption(where=where, reason=f"expected `key: Key` as its first parameter, found {found}")


def check_callable(where: str, option: str, given: object) -> None:
    """Refuse what is neither a function nor None."""
    if given is not None and not callable(given):
        raise BadOption(where=f"{where}, {option}=", reason=f"expected a function, found {given!r}")


def listed(where: str, option: str, given: Any, *, what: str = "a list") -> list[Any]:
    """Return what was given as a list; a text is none."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise BadOption(where=f"{where}, {option}=", reason=f"expected {what}, found {given!r}")
    return list(given)


def names_given(where: str, option: str, given: Any) -> list[str]:
    """Return what was given as a list of texts."""
    names = listed(where, option, given, what="a list of names")
    for name in names:
        if not isinstance(name, str):
            raise BadOption(where=f"{where}, {option}=", reason=f"expected a list of names, found {given!r}")
    return names


def check_texts(where: str, **texts: str | None) -> None:
    """Refuse what no record could hold: it would be found out when something has happened already."""
    for option, text in texts.items():
        if text is not None and not (isinstance(text, str) and is_text(text)):
            raise BadOption(where=f"{where}, {option}=", reason=f"expected a text that UTF-8 can hold, found {text!r}")
