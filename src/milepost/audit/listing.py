"""Which artifacts a file lists, and in which order: each where a record first points at it, once. Pure.

Whoever writes a file and whoever checks one ask the same object, so that none can be dropped or slipped in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from milepost.records.model import Pointer, Record
from milepost.runtime.trust import files_listed, pointers

DIGEST_BYTES = 32


class Listing:
    """The artifacts that come next. Remembers the digests it has named: 32 bytes each."""

    def __init__(self) -> None:
        self._named: set[bytes] = set()
        self._next: deque[tuple[str, Pointer]] = deque()

    def of_record(self, record: Record) -> None:
        """Hear of a record: what it points at comes next. Raises: ValueError, TypeError when that is no artifact."""
        self._next.extend(_checked(pointers((record,))))

    def of_artifact(self, what: str, data: bytes) -> None:
        """Hear of the bytes of an artifact: the files that a manifest lists come next.

        Raises: ValueError, KeyError, TypeError when it is none that can be read.
        """
        self._next.extend(_checked(files_listed(what, data)))

    def take(self) -> tuple[str, Pointer] | None:
        """Return the artifact that is listed next, with what it is; None when none is."""
        while self._next:
            what, pointer = self._next.popleft()
            name = bytes.fromhex(pointer.digest)
            if name not in self._named:
                self._named.add(name)
                return what, pointer
        return None


def _checked(found: Iterable[tuple[str, Pointer]]) -> list[tuple[str, Pointer]]:
    listed = list(found)
    for what, pointer in listed:
        if len(bytes.fromhex(pointer.digest)) != DIGEST_BYTES or type(pointer.size) is not int:
            raise ValueError(f"the {what} is no artifact")
    return listed
