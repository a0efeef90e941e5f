"""A value that is recorded by its name and read when it is sent.

`Secret("SMTP_PASSWORD")` names an environment variable. Records, messages and pickles carry the name; the value exists
only in what `read` returns. Every value that was read is remembered in this process, so that `redact` can take it
out of texts (errors, progress notes) before they are written. Never writes anything itself.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from urllib.parse import quote

from milepost.errors import BadOption

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_LENGTH_MIN = 4  # characters; a shorter value is no secret, and taking it out would shred every text

_read: dict[str, str] = {}  # spelling of a value -> name


class Secret:
    """The name of an environment variable whose value must never be recorded."""

    __slots__ = ("name",)
    name: str

    def __init__(self, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise BadOption(where="Secret(…)", reason="the name of an environment variable is needed, not its value")
        object.__setattr__(self, "name", name)

    def read(self, environ: Mapping[str, str] = os.environ) -> str:
        """Give the value as the environment has it now.

        Raises:
            BadOption: the variable is not set, or empty.
        """
        value = environ.get(self.name, "")
        if not value:
            raise BadOption(where=repr(self), reason=f"the environment variable {self.name} is not set")
        _remember(value, self.name)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Secret is immutable, {name!r} cannot be set")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other.name == self.name

    def __hash__(self) -> int:
        return hash((Secret, self.name))

    def __repr__(self) -> str:
        return f"Secret({self.name!r})"

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        return (Secret, (self.name,))


def redact(text: str) -> str:
    """Replace every secret value read in this process by `[secret NAME]`, also where it is JSON- or URL-quoted."""
    for value in sorted(_read.copy(), key=len, reverse=True):
        if value in text:
            text = text.replace(value, f"[secret {_read[value]}]")
    return text


def _remember(value: str, name: str) -> None:
    if len(value) < _LENGTH_MIN:
        return
    for spelling in (value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
        _read[spelling] = name
    for safe in ("", "/"):
        _read[quote(value, safe=safe, errors="surrogateescape")] = name
