"""The characters of the accounting queue: what it promises about keys and lookups, and how it misbehaves.

One document describes them, on the command line and at `POST /behaviour` alike. Pure: the queue acts on it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any


class Lookup(StrEnum):
    """Whether an accepted exception can be found by its key."""

    YES = "yes"
    LATE = "late"
    NO = "no"


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """One character. POSTs to /exceptions are counted from 1, and counted anew each time the behaviour is set."""

    honours_keys: bool = True
    key_lifetime_s: float = 86_400.0
    """Age at which a key is forgotten; 0 forgets at once."""
    lookup: Lookup = Lookup.YES
    late_s: float = 5.0
    """With `lookup="late"`: age at which an entry begins to show."""
    busy_every: int = 0
    """Every n-th POST is answered 429 and not carried out; 0 is never."""
    retry_after_s: int = 1
    silent_on: tuple[int, ...] = ()
    """These POSTs are carried out and never answered."""
    drop_on: tuple[int, ...] = ()
    """These POSTs are carried out and the connection is closed instead of an answer."""
    clock_ahead_s: float = 0.0
    """How far the queue's clock runs ahead, so that a test can let a day pass without waiting."""

    def changed(self, document: Any) -> Behaviour:
        """Give this behaviour with the named fields changed.

        Raises:
            ValueError: not an object, an unknown field, or a value of another type.
        """
        if not isinstance(document, dict):
            raise ValueError(f"a behaviour is a JSON object, found {type(document).__name__}")
        known = {field.name: getattr(self, field.name) for field in fields(self)}
        unknown = sorted(set(document) - set(known))
        if unknown:
            raise ValueError(f"unknown behaviour {unknown}; known are {sorted(known)}")
        return replace(self, **{name: _like(known[name], name, value) for name, value in document.items()})


def _like(example: object, name: str, value: object) -> Any:
    match example, value:
        case Lookup(), str():
            return Lookup(value)
        case bool(), bool():
            return value
        case tuple(), list() | tuple() if all(type(item) is int for item in value):
            return tuple(value)
        case float(), int() | float() if type(value) is not bool and value >= 0:
            return float(value)
        case int(), int() if type(value) is type(example) and value >= 0:
            return value
    raise ValueError(f"{name}: expected a value like {example!r}, found {value!r}")


CHARACTERS = {
    "honours-keys": Behaviour(lookup=Lookup.NO),
    "can-be-looked-up": Behaviour(honours_keys=False),
    "neither": Behaviour(honours_keys=False, lookup=Lookup.NO),
    "applies-and-never-answers": Behaviour(silent_on=(1,)),
    "forgets-keys": Behaviour(key_lifetime_s=0, lookup=Lookup.NO),
    "looks-up-late": Behaviour(honours_keys=False, lookup=Lookup.LATE),
}
