"""Text from a run for a page or a table: nothing in it moves, hides or reorders what a person reads. Pure.

By written ranges, never by what this Python's Unicode calls printable: the same text comes out on every machine,
for whoever checks a file must be able to write it again.
"""

from __future__ import annotations

import html
import re

_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ud800-\udfff\ufe00-\ufe0e\ufeff\uffa0\ufff0-\uffff\U000e0000-\U000e0fff]"
)
"""Controls, invisible and reordering characters, tags, variation selectors but the emoji one, lone surrogates."""


def plain(text: str) -> str:
    """Show every such character as an escape, `\\x1b` or `\\u202e`."""
    if text.isascii() and text.isprintable():
        return text
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def escaped(value: object) -> str:
    """Return text as it may stand in a page: plain, no markup."""
    return html.escape(plain(str(value)))
