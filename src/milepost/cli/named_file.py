"""What a user names to write to: a file, which no command writes in another way, or a folder to fill.

A regular file stays as it was until the new one is whole. A device, a pipe and /dev/stdout are written into, a link is
followed, and what belongs to a store is refused before anything is done. Called by `audit` and `drill`.
"""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import click

from milepost.artifacts.durable import sync
from milepost.artifacts.files import UNFINISHED_PREFIX
from milepost.errors import MilepostError, UnavailableError
from milepost.runtime.witness import witness_folder
from milepost.stores.locate import belongs_to_store, locate

LINKS_MAX = 40
"""Links that are followed one after the other, as many as Linux follows."""
STDOUT = Path("-")


class _Named(click.Path):
    """A place that is refused where it is read from the command line, not after the work was done."""

    def __init__(self, refusal: Callable[[Path], str], **kind: bool) -> None:
        """`refusal` says why not this one, '' when nothing is against it. Raises: OSError."""
        super().__init__(**kind, path_type=Path)
        self._refusal = refusal

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if not os.fspath(value):  # a Path of it would be the folder a command is called in
            self.fail(f"no {self.name} is named: the name is empty.", param, ctx)
        text = os.fsdecode(super().convert(value, param, ctx))
        try:
            reason = self._refusal(Path(text))
        except OSError as error:  # too long a name, a folder that may not be looked into
            reason = f"cannot be written: {error.strerror or error}"
        if reason:
            self.fail(f"{text!r} {reason}", param, ctx)
        return Path(text)


def _of_a_store(path: Path) -> str:
    if path == STDOUT or descriptor_of(path) is not None or not _is_ours(Path(os.path.realpath(path))):
        return ""
    return "belongs to a Milepost store or its witness; name another file."


def _not_empty(path: Path) -> str:
    with suppress(FileNotFoundError):
        return "is not empty; name a new folder." if os.listdir(path) else ""
    return ""


NAMED_FILE = _Named(_of_a_store, dir_okay=False, writable=True, readable=False)
"""A file to write: no folder, and no file of a store."""
NAMED_FOLDER = _Named(_not_empty, file_okay=False)
"""A folder to fill: a new one, or one with nothing in it, so that nothing of before is mixed with it."""


def _is_ours(target: Path) -> bool:
    try:
        store = locate(Path.cwd(), os.environ)
    except MilepostError:  # whoever must open it says so; what is no store is told from the file itself
        store = None
    witness = witness_folder(os.environ)
    is_witness = witness is not None and target.is_relative_to(os.path.realpath(witness))
    return is_witness or belongs_to_store(target, store)


def descriptor_of(path: Path) -> int | None:
    """Return which open descriptor of this process a path means, as /dev/stdout and /dev/fd/3 do; else None."""
    own = os.path.realpath("/dev/fd")
    for _ in range(LINKS_MAX):
        folder = os.path.realpath(path.parent)
        if folder == own and path.name.isdigit():
            return int(path.name)
        path = Path(folder, path.name)
        if not path.is_symlink():
            return None
        path = Path(folder, os.readlink(path))
    return None


@contextmanager
def told(path: Path, what: str) -> Iterator[None]:
    """Say of a file a user named why it cannot be read or written. Raises: UnavailableError."""
    try:
        yield
    except OSError as error:
        reason = f"{path} cannot be {what}: {error.strerror or error}"
        raise UnavailableError(reason=reason, hint="Free space or permissions, or name another place.") from error


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """Open what a user named, to write all of it. A file that is replaced keeps its mode.

    Crash: the old file or the new one, whole, and perhaps an unfinished one beside it; in a pipe or a device a part.
    Raises: UnavailableError; the old file is there then, and nothing beside it.
    """
    with told(path, "written"), _opened(path) as out:
        yield out


def _opened(path: Path) -> AbstractContextManager[BinaryIO]:
    descriptor = descriptor_of(path)
    if descriptor is not None:
        sys.stdout.flush()
        return open(os.dup(descriptor), "wb")
    try:
        before = os.stat(path)
    except FileNotFoundError:
        return _replaced(Path(os.path.realpath(path)), None)
    if stat.S_ISREG(before.st_mode):
        return _replaced(Path(os.path.realpath(path)), before)
    return open(os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC), "wb")


@contextmanager
def _replaced(target: Path, before: os.stat_result | None) -> Iterator[BinaryIO]:
    """Write a new file beside the target and give it that name at the end. Crash: as `written`. Raises: OSError."""
    new = target.with_name(f"{UNFINISHED_PREFIX}{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(new, flags, 0o666 if before is None else 0o600)
    try:
        with open(handle, "wb") as out:
            yield out
            out.flush()
            if before is not None:
                _as_before(handle, before)
            os.fsync(handle)
        os.replace(new, target)
        with suppress(PermissionError):  # a folder that may be written and not read
            sync(target.parent)
    finally:
        new.unlink(missing_ok=True)


def _as_before(handle: int, before: os.stat_result) -> None:
    """Give a new file the owner, where that is allowed, and the mode of the one it replaces."""
    with suppress(PermissionError):
        os.fchown(handle, before.st_uid, before.st_gid)
    os.fchmod(handle, stat.S_IMODE(before.st_mode))
