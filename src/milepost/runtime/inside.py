"""What an effect's code calls by name: a step or effect in there is refused before anything is in doubt.

An effect is one write. Only names in its own code are seen; what it reaches otherwise is refused when it is called.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any

from milepost.protocol.spec import Spec

NAMED = ("LOAD_GLOBAL", "LOAD_DEREF", "LOAD_NAME")


@lru_cache(1024)
def called_in(function: Callable[..., Any]) -> str | None:
    """Return the name of a step or effect that a function's code calls; `.plain` is a call on purpose and allowed."""
    if not hasattr(function, "__code__"):
        return None
    return next(_called(function), None)


def _called(function: Callable[..., Any]) -> Iterator[str]:
    for load, following in pairwise(dis.get_instructions(function)):
        if load.opname in NAMED and following.argval != "plain":
            spec = getattr(_value(function, str(load.argval)), "spec", None)
            if isinstance(spec, Spec):
                yield spec.name


def _value(function: Any, name: str) -> object:
    """Return what a name in a function's code stands for: of its closure, else of its module."""
    if name in function.__code__.co_freevars:
        cell = function.__closure__[function.__code__.co_freevars.index(name)]
        try:
            return cell.cell_contents
        except ValueError:
            return None  # not bound yet
    return function.__globals__.get(name)
