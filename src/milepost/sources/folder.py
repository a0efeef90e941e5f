"""A folder as a source: the names and contents of the files in it that match a pattern.

Hidden files count, empty folders do not: what a step can read is in files. What Milepost keeps itself does not count,
a `.milepost` and the files of a store that is open here: it changes with each record. Files are ordered by the bytes
of their relative names, nothing is normalised. A symlink is followed; one that leads nowhere or back to a folder above
it counts by its target's name. Nothing is written.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePath

from milepost.errors import BadOption
from milepost.records.frozen import frozen
from milepost.regular import is_a_stores, kind_at
from milepost.sources.content import read_content
from milepost.sources.naming import ALL_FILES, check_path, path_fields, path_of
from milepost.sources.observation import Descriptor, Items, Observation, content_fingerprint

DEPTH_MAX = 100  # folders inside each other
ENTRIES_MAX = 100_000  # files and folders looked at
PATTERN_PARTS_MAX = 20  # parts between slashes


@dataclass(frozen=True, slots=True)
class Folder:
    """The files below a folder. `pattern` is a glob of relative names: `*.csv`, `2026-*/**/*.eml`, `**/*` for all."""

    path: str | PurePath
    pattern: str = ALL_FILES

    def __post_init__(self) -> None:
        check_path("Folder(path)", self.path)
        parts = self.pattern.split("/")
        odd = any(part in ("", ".", "..") for part in parts) or not self.pattern.isprintable()
        if odd or len(parts) > PATTERN_PARTS_MAX:
            reason = (
                f"expected a relative glob like '*.csv' of at most {PATTERN_PARTS_MAX} parts, found {self.pattern!r}"
            )
            raise BadOption(where="Folder(pattern=…)", reason=reason)

    def descriptor(self) -> Descriptor:
        """Return the source as data."""
        return {"kind": "folder", **path_fields("path", self.path), "pattern": self.pattern}


@frozen
class Entry:
    """One name in a folder, relative to it; `is_link` when it is a symlink that is not followed."""

    name: str
    is_link: bool = False


def observe_folder(descriptor: Descriptor, seal_key: bytes | None) -> Observation:
    """Look at the folder a descriptor names.

    Raises:
        FileNotFoundError: something vanished between being listed and being read; look again.
        OSError: a part of it cannot be read.
    """
    root, pattern = path_of(descriptor), descriptor.get("pattern", ALL_FILES)
    items, whole, count = Items(seal_key), hashlib.sha256(), 0
    for entry in entries_of(root, pattern):
        digest = _content_of(root, entry)
        name = os.fsencode(entry.name)
        whole.update(len(name).to_bytes(8, "big") + name + digest)
        items.add(entry.name, digest)
        count += 1
    fingerprint = content_fingerprint("folder", whole.digest(), seal_key)
    return Observation({**descriptor, "kind": "folder", "pattern": pattern}, fingerprint, count, items.all())


def entries_of(root: str, pattern: str) -> list[Entry]:
    """Return the files below `root` that match, ordered by the bytes of their names. Raises: OSError."""
    wanted = _parts_of(pattern)
    found = [entry for entry in _Walk(root).below("") if _matches(entry.name.split("/"), wanted)]
    return sorted(found, key=lambda entry: os.fsencode(entry.name))


def _content_of(root: str, entry: Entry) -> bytes:
    path = os.path.join(root, entry.name)
    if entry.is_link:
        return hashlib.sha256(b"link\0" + os.fsencode(os.readlink(path))).digest()
    return read_content(path).digest


class _Walk:
    """One walk through a folder, bounded in depth and in the number of entries."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._count = 0

    def below(self, relative: str, above: tuple[tuple[int, int], ...] = ()) -> Iterator[Entry]:
        """Give every file below one folder; `above` are the folders on the way there, by device and inode."""
        here = os.path.join(self._root, relative)
        status = os.stat(here)
        identity = (status.st_dev, status.st_ino)
        if identity in above:
            yield Entry(relative, is_link=True)
            return
        if len(above) == DEPTH_MAX:
            raise OSError(errno.EFBIG, f"more than {DEPTH_MAX} folders inside each other", here)
        for name in os.listdir(here):
            if is_a_stores(here, name):
                continue
            self._counted(here)
            yield from self._at(f"{relative}/{name}" if relative else name, (*above, identity))

    def _at(self, relative: str, above: tuple[tuple[int, int], ...]) -> Iterator[Entry]:
        path = os.path.join(self._root, relative)
        kind = _followed_kind(path)
        if kind == "folder":
            yield from self.below(relative, above)
        elif kind is None:
            os.readlink(path)  # a link that leads nowhere is an entry; a file that vanished is not
            yield Entry(relative, is_link=True)
        else:
            yield Entry(relative)

    def _counted(self, here: str) -> None:
        self._count += 1
        if self._count > ENTRIES_MAX:
            raise OSError(errno.EFBIG, f"more than {ENTRIES_MAX:,} files and folders", here)


def _followed_kind(path: str) -> str | None:
    try:
        return kind_at(path)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None
        raise


def _parts_of(pattern: str) -> list[str]:
    """Split a glob at its slashes; `**` twice in a row says nothing more than once."""
    parts: list[str] = []
    for part in pattern.split("/"):
        if part != "**" or parts[-1:] != ["**"]:
            parts.append(part)
    return parts


def _matches(names: list[str], wanted: list[str]) -> bool:
    """Tell whether a relative name fits a glob; `**` stands for any number of folders, none included."""
    fits = [True] + [False] * len(names)  # fits[n]: the first n names fit the parts of the glob seen so far
    for part in wanted:
        if part == "**":
            fits = [any(fits[: count + 1]) for count in range(len(fits))]
        else:
            fits = [False] + [fits[at] and fnmatchcase(name, part) for at, name in enumerate(names)]
    return fits[-1]
