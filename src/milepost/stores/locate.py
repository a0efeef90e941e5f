"""Finds the store a command means: MILEPOST_STORE, else `.milepost/store.sqlite` upwards from a folder.

Upwards may lead into folders that others can write to: a store found there must be its reader's own, or root's, since
a resume runs the code that it names. Called by the command line and by `api`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from milepost.errors import StoreMissing, StoreNotYours
from milepost.owners import foreign_owner
from milepost.regular import BESIDE, STORE_FOLDER
from milepost.stores.sqlite.faults import translated
from milepost.stores.sqlite.opening import is_store
from milepost.stores.sqlite.store import SqliteStore

VARIABLE = "MILEPOST_STORE"
USUAL = Path(STORE_FOLDER, "store.sqlite")


def locate(start: Path, environ: Mapping[str, str]) -> Path | None:
    """Return the store's file, there or not when MILEPOST_STORE names it; None when there is none.

    Raises: StoreNotYours when the one that is found belongs to somebody else; StoreUnavailable.
    """
    named = environ.get(VARIABLE)
    if named:
        return start.absolute() / named
    start = start.absolute()
    return next((found for folder in (start, *start.parents) if _is_there(found := folder / USUAL)), None)


def _is_there(path: Path) -> bool:
    with translated(str(path), "look for a store"):
        if not path.exists():
            return False
        owners = [(place, foreign_owner(place)) for place in (path.parent, path)]
    for place, owner in owners:
        if owner is not None:
            raise StoreNotYours(location=path, what=place.name, owner=owner)
    return True


def belongs_to_store(target: Path, store: Path | None) -> bool:
    """Say whether a file, links followed, is one of a store: of this one, there or not yet, or another one itself."""
    return (store is not None and _is_of(target, store)) or is_store(target)


def _is_of(target: Path, store: Path) -> bool:
    """Say whether a file is a store's own, there or not: the database, or what lies beside it and in there."""
    folder = Path(os.path.realpath(store.parent))
    if target == folder or not target.is_relative_to(folder):
        return False
    name = target.relative_to(folder).parts[0]
    is_beside = name.startswith(store.name) and BESIDE.fullmatch(name, len(store.name)) is not None
    return is_beside or target == Path(os.path.realpath(store))


def open_store(
    *, create: bool, start: Path | None = None, environ: Mapping[str, str] = os.environ, read_only: bool = False
) -> SqliteStore:
    """Open the store found from `start` (default: the working folder); with `create`, make one when there is none.

    Crash: no store, or a whole one. Raises: StoreMissing, and what `locate` and SqliteStore raise.
    """
    start = (start or Path.cwd()).absolute()
    path = locate(start, environ)
    if path is None:
        path = start / USUAL
        if not create:
            raise StoreMissing(location=path)
    return SqliteStore(path, create=create, read_only=read_only)
