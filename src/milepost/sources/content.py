"""The bytes of a file on this machine: what kind of thing stands at a path, and the digest of its content.

Only regular files are read (symlinks followed): opening a FIFO or a device could hang or act. Nothing is written.
Raises plain OSErrors; `files` and `folder`, its only callers, say what they mean.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat

from milepost.records.frozen import frozen

PIECE_SIZE = 1024 * 1024  # bytes read at once
FILE_SIZE_MAX = 1 << 40  # bytes; a file that keeps growing while it is read ends here
KEPT_SIZE_MAX = 256 * 1024  # bytes up to which the content is kept for a diff by lines

_NAMES = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFIFO: "FIFO",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


@frozen
class Content:
    """What a file held: SHA-256, size in bytes, and the bytes themselves up to KEPT_SIZE_MAX (else None)."""

    digest: bytes
    size: int
    kept: bytes | None


def kind_at(path: str) -> str | None:
    """Return `file`, `folder`, `FIFO`, `socket` or `device`; None when there is nothing. Symlinks are followed.

    Raises:
        OSError: it cannot be told (a folder that may not be searched, a link to itself).
    """
    try:
        return kind_of(os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


def kind_of(status: os.stat_result) -> str:
    """Return the word for what `os.stat` found."""
    return _NAMES.get(stat.S_IFMT(status.st_mode), "special file")


def read_content(path: str) -> Content:
    """Read a regular file in pieces of 1 MiB.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    digest, size, kept = hashlib.sha256(), 0, bytearray()
    with open(path, "rb", buffering=0, opener=_open_regular) as file:
        while piece := file.read(PIECE_SIZE):
            digest.update(piece)
            size += len(piece)
            if size <= KEPT_SIZE_MAX:
                kept += piece
            if size > FILE_SIZE_MAX:
                raise OSError(errno.EFBIG, f"more than {FILE_SIZE_MAX:,} bytes", path)
    return Content(digest.digest(), size, bytes(kept) if size <= KEPT_SIZE_MAX else None)


def _open_regular(path: str, flags: int) -> int:
    """Open without ever waiting: between a look and the opening, a FIFO can have taken the file's place."""
    _refuse_special(os.stat(path), path)
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        _refuse_special(os.fstat(descriptor), path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _refuse_special(status: os.stat_result, path: str) -> None:
    kind = kind_of(status)
    if kind != "file":
        raise OSError(errno.EINVAL, f"is a {kind}, expected a regular file", path)
