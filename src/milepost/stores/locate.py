"""Finds the store a command means: MILEPOST_STORE, else `.milepost/store.sqlite` upwards from a folder.

Called by the command line and by `api`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from milepost.errors import StoreMissing
from milepost.stores.sqlite.store import SqliteStore

VARIABLE = "MILEPOST_STORE"
USUAL = Path(".milepost", "store.sqlite")


def locate(start: Path, environ: Mapping[str, str]) -> Path | None:
    """Return the store's file, there or not when MILEPOST_STORE names it; None when there is none."""
    named = environ.get(VARIABLE)
    if named:
        return start.absolute() / named
    start = start.absolute()
    return next((folder / USUAL for folder in (start, *start.parents) if (folder / USUAL).exists()), None)


def open_store(*, create: bool, start: Path | None = None, environ: Mapping[str, str] = os.environ) -> SqliteStore:
    """Open the store found from `start` (default: the working folder); with `create`, make one when there is none.

    Crash: no store, or a whole one. Raises: StoreMissing, and what SqliteStore raises.
    """
    start = (start or Path.cwd()).absolute()
    path = locate(start, environ)
    if path is None:
        path = start / USUAL
        if not create:
            raise StoreMissing(location=path)
    return SqliteStore(path, create=create)
