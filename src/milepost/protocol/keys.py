"""Names and idempotency keys: what identifies a step or an effect for ever. Pure.

A key never contains attempt, time or model text. Its format is fixed by golden tests: changing it would
make every open intent in the field unfindable.
"""

from __future__ import annotations

import base64
import hashlib
import unicodedata

from milepost.errors import BadName
from milepost.records.naming import ENDS_A_KEY, last_part, parts_of

NAME_LENGTH_MAX = 200
"""Characters of a run id, a step name or a key="""


class Key:
    """An effect's idempotency key, handed to it as its first parameter. `str(key)` is what to send."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Key({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and other._text == self._text

    def __hash__(self) -> int:
        return hash((Key, self._text))


def derive_key(task: str, family: str, path: str, effect: str, item_key: str | None, variant: int = 0) -> Key:
    """Return `mp1-` and 32 base32 characters of SHA-256 over the length-prefixed, NFC-normalised parts.

    `family` and `path` are '' for scope="task". `variant` is the number of the answer that allowed to
    send another request under the same name; 0 leaves it out.
    """
    parts = [task, family, path, effect, "" if item_key is None else f"={item_key}"]
    if variant:
        parts.append(f"#{variant}")
    message = b"".join(_prefixed(unicodedata.normalize("NFC", part).encode("utf-8")) for part in parts)
    code = base64.b32encode(hashlib.sha256(b"milepost-key-1" + message).digest()[:20])
    return Key("mp1-" + code.decode("ascii").lower())


def _prefixed(part: bytes) -> bytes:
    return len(part).to_bytes(4, "big") + part


def name_in(path: str) -> str:
    """Return the declared name in a path's last part: `a/match[INV-7]#2` → `match`."""
    return last_part(path).partition("[")[0].partition("#")[0]


def names_in(path: str) -> tuple[str, ...]:
    """Return the declared names along a path, the outermost body first: what equal items of a `.map` share."""
    return tuple(name_in(part) for part in parts_of(path))


def checked_name(what: str, name: object) -> str:
    """Return a run id, step name or key in NFC. Raises: BadName saying which rule it breaks."""
    if type(name) is not str:
        found = f"expected str, found {type(name).__name__}"
        raise BadName(what=what, name=repr(name)[:80], reason=found, hint="Give it as a text, such as str(…).")
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise BadName(what=what, name=ascii(name)[:80], reason="it contains a lone surrogate") from None
    text = unicodedata.normalize("NFC", name)
    reason = _broken_rule(text)
    if reason:
        raise BadName(what=what, name=text[:80], reason=reason)
    return text


def checked_step_name(what: str, name: object) -> str:
    """As `checked_name`; also refuses the characters that build paths (`/`, `[`, `]`, `#`)."""
    text = checked_name(what, name)
    used = sorted(set(text) & set("/[]#"))
    if used:
        raise BadName(what=what, name=text[:80], reason=f"it contains {' '.join(used)}, which separate names in a path")
    return text


def checked_item_key(what: str, name: object) -> str:
    """As `checked_name`; also refuses what would end the key early in a path. It may be a URL or a file."""
    text = checked_name(what, name)
    if ENDS_A_KEY.search(text):
        raise BadName(what=what, name=text[:80], reason="it contains ']' before '/', where a path would go on")
    return text


def _broken_rule(text: str) -> str | None:
    if not text:
        return "it is empty"
    if len(text) > NAME_LENGTH_MAX:
        return f"it has {len(text)} characters, at most {NAME_LENGTH_MAX} are allowed"
    if text[0] in "-.~":
        return f"it starts with {text[0]!r}"
    if text != text.strip():
        return "it starts or ends with a blank"
    bad = next((c for c in text if unicodedata.category(c) in _UNPRINTABLE), None)
    if bad is not None:
        return f"it contains the unprintable character U+{ord(bad):04X}"
    return None


_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
