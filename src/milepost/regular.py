"""What kind of thing stands at a path, and what may be read: regular files, for a FIFO could hang, a device could act.

Never a file of a store that is open here: closing it would end SQLite's locks on it, which are the process's.
Symlinks are followed. Nothing is written. Raises plain OSErrors. Called by the observers of sources and by
whoever reads a file that a user names: settings, tokens, instructions.
"""

from __future__ import annotations

import errno
import os
import re
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

STORE_FOLDER = ".milepost"
BESIDE = re.compile(r"(-wal|-shm|-journal|\.(artifacts|locks|watch|notify)\b.*|\.[0-9a-f]+\.new)?", re.DOTALL)
"""What is added to the name of a store's file for those that lie beside it."""
_stores: set[tuple[str, str]] = set()
"""Folder and name of each store that this process has opened, links followed and not."""


def keep_off(store: Path) -> None:
    """Take note of a store: its files are not read from here on."""
    for path in (str(store), os.path.realpath(store)):
        folder, name = os.path.split(path)
        _stores.add((os.path.realpath(folder), name))


def is_a_stores(folder: str, name: str) -> bool:
    """Say whether a name in a folder is Milepost's own: a `.milepost`, or what a store opened here is made of."""
    if name == STORE_FOLDER:
        return True
    homes = [home for home, store in [*_stores] if name.startswith(store) and BESIDE.fullmatch(name, len(store))]
    return bool(homes) and os.path.realpath(folder) in homes


def refuse_stores(status: os.stat_result, path: str) -> None:
    """Refuse a file that SQLite may hold locks on. Raises: OSError."""
    locked = (os.path.join(folder, f"{name}{suffix}") for folder, name in [*_stores] for suffix in ("", "-shm"))
    if any(_is_same(status, file) for file in locked):
        raise OSError(errno.EBUSY, "belongs to a store of Milepost that this process has opened, leave it out", path)


def _is_same(status: os.stat_result, path: str) -> bool:
    try:
        return os.path.samestat(status, os.stat(path))
    except OSError:
        return False


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
    found = os.stat(path)
    _refuse_special(found, path)
    refuse_stores(found, path)
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
