"""The bytes of a file on this machine, and the digest of its content.

Only regular files are read (symlinks followed). Nothing is written.
Raises plain OSErrors; `files` and `folder`, its only callers, say what they mean.
"""

from __future__ import annotations

import errno
import hashlib

from milepost.records.frozen import frozen
from milepost.regular import open_regular

PIECE_SIZE = 1024 * 1024  # bytes read at once
FILE_SIZE_MAX = 1 << 40  # bytes; a file that keeps growing while it is read ends here
KEPT_SIZE_MAX = 256 * 1024  # bytes up to which the content is kept for a diff by lines


@frozen
class Content:
    """What a file held: SHA-256, size in bytes, and the bytes themselves up to KEPT_SIZE_MAX (else None)."""

    digest: bytes
    size: int
    kept: bytes | None


def read_content(path: str) -> Content:
    """Read a regular file in pieces of 1 MiB.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    digest, size, kept = hashlib.sha256(), 0, bytearray()
    with open(path, "rb", buffering=0, opener=open_regular) as file:
        while piece := file.read(PIECE_SIZE):
            digest.update(piece)
            size += len(piece)
            if size <= KEPT_SIZE_MAX:
                kept += piece
            if size > FILE_SIZE_MAX:
                raise OSError(errno.EFBIG, f"more than {FILE_SIZE_MAX:,} bytes", path)
    return Content(digest.digest(), size, bytes(kept) if size <= KEPT_SIZE_MAX else None)
