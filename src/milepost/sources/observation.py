"""What one look at a source found: a fingerprint of its content, its size, and its parts for a diff.

A label (line number, first column, file name) is kept as it is. The text of lines and rows is kept only of what is
small, and never in a run that is sealed with a key: there, fingerprints alone are kept.
Never looks at anything itself; the observers of each kind of source build these.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

from milepost.records.fingerprint import fingerprint
from milepost.records.frozen import frozen
from milepost.records.secret import redact
from milepost.records.shown import cut, readable

Descriptor: TypeAlias = dict[str, Any]
"""A source as JSON data, enough to observe it again without the user's code. `kind` says which one."""

ITEMS_MAX = 2000  # lines, rows or files; a source with more has no items, only a fingerprint
LABEL_MAX = 80  # characters
TEXTS_SIZE_MAX = 64 * 1024  # bytes; of a larger source no texts are kept
TEXT_MAX = 200  # characters of one line or row
ITEM_HEX = 12  # characters of an item's fingerprint: enough for a diff, never used to decide


class Source(Protocol):
    """Anything that can be named in `sources=`."""

    def descriptor(self) -> Descriptor:
        """Return the source as data."""
        ...


@frozen
class Observation:
    """One look at a source. `descriptor["kind"]` is what was found, even where something else was declared."""

    descriptor: Descriptor
    fingerprint: str | None
    """Hexadecimal, keyed with the seal key; None when there is nothing."""
    size: int
    """Bytes, rows or files, as the kind has them; 0 when the other side did not say."""
    items: tuple[tuple[str, str], ...] = ()
    """(label, short fingerprint) in the source's own order; empty when there are none or too many."""
    texts: tuple[str, ...] = ()
    """What each part said, beside `items`; empty when the source is large or the run sealed with a key."""

    def to_json(self) -> dict[str, Any]:
        """Return the observation as JSON data."""
        data: dict[str, Any] = {
            "descriptor": self.descriptor,
            "fingerprint": self.fingerprint,
            "items": [list(item) for item in self.items],
            "size": self.size,
        }
        return {**data, "texts": list(self.texts)} if self.texts else data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Observation:
        """Read an observation back from what `to_json` returned."""
        items = tuple((label, short) for label, short in data["items"])
        return cls(data["descriptor"], data["fingerprint"], data["size"], items, tuple(data.get("texts", ())))


class Items:
    """Collects the parts of a source for a diff, and gives up on all of them when there are more than ITEMS_MAX."""

    def __init__(self, seal_key: bytes | None) -> None:
        self._seal_key = seal_key
        self._found: list[tuple[str, str]] = []
        self._too_many = False
        self._texts: list[str] = []
        self._texts_left = TEXTS_SIZE_MAX if seal_key is None else 0

    def add(self, label: str, content: bytes, text: str | None = None) -> None:
        """Add one part: `label` names it to people, `content` is what is compared, `text` shows what it says."""
        if len(self._found) == ITEMS_MAX:
            self._too_many = True
            return
        self._found.append((readable(label)[:LABEL_MAX], fingerprint(content, self._seal_key)[:ITEM_HEX]))
        self._texts_left -= len(content)
        if text is not None and self._texts_left >= 0:
            self._texts.append(cut(readable(redact(text)), TEXT_MAX))

    def all(self) -> tuple[tuple[str, str], ...]:
        """Return every part in the order it came, or none at all."""
        return () if self._too_many else tuple(self._found)

    def texts(self) -> tuple[str, ...]:
        """Return what every part says, or nothing at all."""
        return () if self._too_many or self._texts_left < 0 else tuple(self._texts)


def absent(descriptor: Descriptor) -> Observation:
    """Return the observation that there is nothing."""
    return Observation(descriptor, None, 0)


def content_fingerprint(kind: str, digest: bytes, seal_key: bytes | None) -> str:
    """Return the fingerprint of content whose SHA-256 is `digest`; equal bytes of two kinds have two fingerprints."""
    return fingerprint(kind.encode() + b"\0" + digest, seal_key)
