"""Texts that come in from outside, of a command or the environment: no record holds bytes that are not UTF-8. Pure.

Python gives such bytes as lone surrogates. Called wherever such a text comes in, before anything is written.
"""

from __future__ import annotations

from collections.abc import Mapping

from milepost.errors import BadName, BadOption


def is_text(text: str) -> bool:
    """Say whether UTF-8 can hold a text."""
    return text.encode("utf-8", "replace").decode("utf-8") == text


def checked_text(what: str, text: str, hint: str = BadName.hint) -> str:
    """Return a text as it is. Raises: BadName when UTF-8 cannot hold it."""
    if not is_text(text):
        reason = "it holds bytes that are not UTF-8"
        shown = text.encode("utf-8", "backslashreplace").decode("utf-8")
        raise BadName(what=what, name=shown[:80], reason=reason, hint=hint)
    return text


def variable(environ: Mapping[str, str], name: str) -> str:
    """Return a variable of the environment, "" without it. Raises: BadOption when UTF-8 cannot hold it."""
    text = environ.get(name, "")
    if not is_text(text):  # its value may be a secret: it is not shown
        raise BadOption(where=name, reason="it holds bytes that are not UTF-8", hint=f"Set {name} to a UTF-8 text.")
    return text
