"""Text from a run, made harmless: nothing moves a cursor, hides or reorders what a person reads. Pure."""

from __future__ import annotations


def inert(text: object, *, lines: bool = False) -> str:
    """Show every character that could move a cursor, hide or reorder text as an escape; `lines` keeps line breaks."""
    shown = str(text)
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() or (lines and c == "\n") else _escaped(c) for c in shown)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
