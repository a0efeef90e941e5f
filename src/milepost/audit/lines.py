"""A line of an audit record: numbered, and proven by a digest over itself and all lines before it.

With the run's seal key the proofs are HMACs: nobody without it can add, drop, move or change a line. Pure.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

FORMAT = 1
"""Number of the format that docs/audit.md describes; it grows when a line, a field or its wording changes."""
_DOMAIN = b"milepost-audit-1\0"

Content: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Line:
    """One line: what it says, and the exact JSON text that a reader checks."""

    content: Content
    text: str


class Scribe:
    """Numbers the contents it is given and proves each by those before. `key` is the run's seal key, None without."""

    def __init__(self, key: bytes | None) -> None:
        self._key = key
        self._before = bytes(32)
        self.number = 0

    def write(self, content: Content) -> Line:
        """Return the next line."""
        self.number += 1
        unproven = _text({"line": self.number, **content})
        self._before = self._proof(_DOMAIN + self._before + unproven.encode("ascii"))
        return Line({"line": self.number, **content}, f'{unproven[:-1]},"proof":"{self._before.hex()}"}}')

    def _proof(self, message: bytes) -> bytes:
        if self._key is None:
            return hashlib.sha256(message).digest()
        return hmac.digest(self._key, message, "sha256")


def without_proof(text: str) -> str:
    """Return a line's text without its proof, for a reader who cannot tell proofs."""
    return text.rpartition(',"proof":"')[0] + "}"


def _text(content: Content) -> str:
    """Write one line of JSON; everything but ASCII is escaped, so that it is inert wherever it is shown."""
    return json.dumps(content, ensure_ascii=True, separators=(",", ":"))
