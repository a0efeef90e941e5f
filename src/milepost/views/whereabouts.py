"""Where a run's task is now: as recorded, beside a store that was copied or moved, or where a person says.

Looks, imports nothing. Called by the command line and the console before the task is loaded.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from milepost.errors import MilepostError, UnknownTask
from milepost.records.frozen import frozen
from milepost.records.model import RunStarted
from milepost.regular import STORE_FOLDER
from milepost.stores.locate import USUAL, locate


@frozen
class Whereabouts:
    """The target to import, the folder to work in, and what is to be said because the record says otherwise."""

    target: str
    folder: Path
    said: tuple[str, ...]


def whereabouts(started: RunStarted, location: str, run_id: str, *, named: str | None = None) -> Whereabouts:
    """Return where a run goes on, in the working folder that `named` and the store were found from.

    Raises: UnknownTask with the command that names the task where it is now.
    """
    root, said = _root(location), []
    target, folder = started.target, Path(started.folder)
    origin = _origin(started, location, root)
    if named is None and _is_gone(target):
        target, folder = _moved(started, root, run_id)
        said.append(f"The task's file was moved: {started.target} is gone; going on with {target}.")
    elif origin is not None:
        target = _from_here(named) if named else _beside(started, origin, root, run_id)
        folder = root / folder.relative_to(origin)
        said.append(f"The run began in {started.folder}, with another copy of its store; going on in {folder}.")
    elif named is not None:
        target = _from_here(named)
    if not folder.is_dir():
        there = Path.cwd() if named else root
        said.append(f"The folder of the run is gone: {folder}; going on in {there}.")
        folder = there
    return Whereabouts(target, folder, tuple(said))


def _root(location: str) -> Path:
    """Return the folder a usual store belongs to, else the working folder."""
    store = Path(location)
    return store.parent.parent if store.parent.name == STORE_FOLDER else Path.cwd()


def _file_of(target: str) -> Path | None:
    place, colon, _ = target.rpartition(":")
    return Path(place) if colon and place.endswith(".py") else None


def _is_gone(target: str) -> bool:
    file = _file_of(target)
    return file is not None and not file.is_file()


def _from_here(named: str) -> str:
    """Return a target a person typed so that it still holds in another folder."""
    place, colon, task = named.rpartition(":")
    if named.endswith(".py"):
        return str(Path(named).absolute())
    return f"{Path(place).absolute()}{colon}{task}" if place.endswith(".py") else named


# ── moved, and what it was is gone ──────────────────────────────────────────────────────────────────


def _moved(started: RunStarted, root: Path, run_id: str) -> tuple[str, Path]:
    """Look for the task's file where it is if a folder around it and the store was moved as a whole."""
    name = started.target.rpartition(":")[2]
    tried = list(_candidates(started, root))
    for file, before in tried:
        if file.is_file():
            return f"{file}:{name}", root / Path(started.folder).relative_to(before)
    looked = f"; neither is {tried[0][0]}" if tried else ""
    raise _unknown(started, run_id, f"its file is gone{looked}")


def _candidates(started: RunStarted, root: Path) -> Iterator[tuple[Path, Path]]:
    """Yield where the file would be, and which folder would have been moved: the run's own, then those around it."""
    file = _file_of(started.target)
    for before in _around(Path(started.folder)):
        if file is not None and file.is_relative_to(before):
            yield root / file.relative_to(before), before


def _around(folder: Path) -> tuple[Path, ...]:
    return (folder, *folder.parents[:-1])


def _unknown(started: RunStarted, run_id: str, reason: str) -> UnknownTask:
    name = started.target.rpartition(":")[2]
    hint = f"`milepost resume {shlex.quote(run_id)} --task FILE.py:{name}` names it where it is now."
    return UnknownTask(target=started.target, reason=reason, hint=hint)


# ── copied, and what it was is still there ──────────────────────────────────────────────────────────


def _origin(started: RunStarted, location: str, root: Path) -> Path | None:
    """Return the folder that the store's own is a copy of; None where the recorded folder is the right one.

    That it is, where the store was named and not found from here: MILEPOST_STORE may name one anywhere.
    """
    folder = Path(started.folder)
    if not _is_found_from_here(location) or Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(root)):
        return None
    stores = (before for before in _around(folder) if os.path.exists(before / USUAL))
    origin = next(stores, None)  # the store that the run's folder has now
    if origin is not None:
        return None if os.path.samefile(origin / USUAL, location) else origin
    return next((before for file, before in _candidates(started, root) if file.is_file()), None)


def _is_found_from_here(location: str) -> bool:
    try:
        found = locate(Path.cwd(), {})
    except MilepostError:
        return False
    return found is not None and os.path.samefile(found, location)


def _beside(started: RunStarted, origin: Path, root: Path, run_id: str) -> str:
    """Return the target in the copy; the recorded one when it is no file or lies outside of what was copied."""
    file = _file_of(started.target)
    if file is None or not file.is_relative_to(origin):
        return started.target
    copied = root / file.relative_to(origin)
    if not copied.is_file():
        raise _unknown(started, run_id, f"its file was not copied with the store: there is no {copied}")
    return f"{copied}:{started.target.rpartition(':')[2]}"
