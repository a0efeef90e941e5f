"""What kind of thing stands at a path. Only regular files are read: opening a FIFO could hang, a device could act.

Symlinks are followed. Nothing is written. Raises plain OSErrors. Called by the observers of sources and by
whoever reads a file that a user names: settings, tokens, instructions.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_NAMES = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFIFO: "FIFO",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


def kind_at(path: str) -> str | None:
    """Return `file`, `folder`, `FIFO`, `socket` or `device`; None when there is nothing.

    Raises:
        OSError: it cannot be told (a folder that may not be searched, a link to itself).
    """
    try:
        return _kind_of(os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


def read_regular(file: Path) -> bytes:
    """Read a file whole. Raises: OSError, also when it is no regular file."""
    with open(file, "rb", opener=open_regular) as opened:
        return opened.read()


def open_regular(path: str, flags: int) -> int:
    """Open without ever waiting: between a look and the opening, a FIFO can have taken the file's place.

    For `open(…, opener=)`. Raises: OSError, also when it is no regular file.
    """
    _refuse_special(os.stat(path), path)
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        _refuse_special(os.fstat(descriptor), path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _refuse_special(status: os.stat_result, path: str) -> None:
    kind = _kind_of(status)
    if kind != "file":
        raise OSError(errno.EINVAL, f"is a {kind}, expected a regular file", path)


def _kind_of(status: os.stat_result) -> str:
    return _NAMES.get(stat.S_IFMT(status.st_mode), "special file")
