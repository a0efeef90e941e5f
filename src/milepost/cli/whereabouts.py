"""Where a run's task is now: as recorded, in a folder that was moved with its store, or where a person says.

Finds and goes there; imports nothing. Called by `recorded` before the task is imported.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from milepost.cli.output import note
from milepost.errors import UnknownTask
from milepost.records.model import RunStarted


def go_to(started: RunStarted, location: str, run_id: str, *, named: str | None = None) -> str:
    """Go to the folder a run works in and return the target to import; what differs from the record is said.

    Raises: UnknownTask with the command that names the task where it is now.
    """
    there, folder = Path.cwd() if named else _root(location), Path(started.folder)
    if named is not None:
        target = _from_here(named)
    elif not _is_gone(started.target):
        target = started.target
    else:
        target, folder = _moved(started, there, run_id)
        note(f"The task's file was moved: {started.target} is gone; going on with {target}.")
    if not folder.is_dir():
        note(f"The folder of the run is gone: {folder}; going on in {there}.")
        folder = there
    os.chdir(folder)
    return target


def _root(location: str) -> Path:
    """Return the folder a usual store belongs to, else the working folder."""
    store = Path(location)
    return store.parent.parent if store.parent.name == ".milepost" else Path.cwd()


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


def _moved(started: RunStarted, root: Path, run_id: str) -> tuple[str, Path]:
    """Look for the task's file where it is if a folder around it and the store was moved as a whole."""
    name = started.target.rpartition(":")[2]
    tried = list(_candidates(started, root))
    for file, folder in tried:
        if file.is_file():
            return f"{file}:{name}", folder
    looked = f"; neither is {tried[0][0]}" if tried else ""
    raise UnknownTask(
        target=started.target,
        reason=f"its file is gone{looked}",
        hint=f"`milepost resume {shlex.quote(run_id)} --task FILE.py:{name}` names it where it is now.",
    )


def _candidates(started: RunStarted, root: Path) -> Iterator[tuple[Path, Path]]:
    file, folder = _file_of(started.target), Path(started.folder)
    for before in (folder, *folder.parents[:-1]):  # the folder that was moved, from the run's own outwards
        if file is not None and file.is_relative_to(before):
            yield root / file.relative_to(before), root / folder.relative_to(before)
