"""Folders and files that are still there after a power cut: fsync of the thing and of the folder that names it.

Called by artifact files and by whoever creates a store.
"""

from __future__ import annotations

import os
from pathlib import Path


def make_folder(folder: Path, *, mode: int = 0o700) -> None:
    """Make a folder and those above it, each durable. Crash: the upper ones, or all. Raises: OSError."""
    if folder.is_dir():
        return
    make_folder(folder.parent, mode=mode)
    folder.mkdir(mode=mode, exist_ok=True)
    sync(folder.parent)


def sync(path: str | Path) -> None:
    """Force a file's bytes, or a folder's entries, to the disk. Crash: there or not, as before. Raises: OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
