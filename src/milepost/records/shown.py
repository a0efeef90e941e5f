"""Text of others as it is shown: harmless, in so many characters, in bytes that UTF-8 can hold. Pure."""

from __future__ import annotations


def inert(text: object, *, lines: bool = False) -> str:
    """Show every character that could move a cursor, hide or reorder text as an escape; `lines` keeps line breaks."""
    shown = str(text)
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() or (lines and c == "\n") else _escaped(c) for c in shown)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def cut(text: str, length_max: int) -> str:
    """Cut a text to so many characters, the last of them an ellipsis."""
    return text if len(text) <= length_max else f"{text[: length_max - 1]}…"


def cut_to_size(text: str, size_max: int) -> str:
    """Cut a text to so many UTF-8 bytes; lone surrogates are shown as escapes."""
    data = text[: size_max + 1].encode("utf-8", "backslashreplace")
    if len(data) <= size_max and len(text) <= size_max:
        return data.decode("utf-8")
    mark = " …(cut)"
    return data[: size_max - len(mark.encode())].decode("utf-8", "ignore") + mark


def readable(text: str) -> str:
    """Return text that UTF-8 can hold: a lone surrogate, such as a byte of a file name, becomes `\\udcXX`."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
