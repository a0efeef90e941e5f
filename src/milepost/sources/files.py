"""A file as a source, fingerprinted by content, and what becomes of a `Path` among a step's arguments.

Size and time never count: a copy is equal, an edit within the same second is not. Nothing is written.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import PurePath

from milepost.sources.content import read_content
from milepost.sources.folder import Folder
from milepost.sources.naming import check_path, path_fields, path_of
from milepost.sources.observation import Descriptor, Items, Observation, Source, content_fingerprint


@dataclass(frozen=True, slots=True)
class File:
    """A file, by its content. A relative path stays relative, symlinks are followed."""

    path: str | PurePath

    def __post_init__(self) -> None:
        check_path("File(path)", self.path)

    def descriptor(self) -> Descriptor:
        """Return the source as data."""
        return {"kind": "file", **path_fields("path", self.path)}


def of_path(path: PurePath) -> Source:
    """Return the source for a path among a step's arguments: what it is now; nothing there counts as a file."""
    return Folder(path) if os.path.isdir(path) else File(path)


def observe_file(descriptor: Descriptor, seal_key: bytes | None) -> Observation:
    """Look at the regular file a descriptor names. Raises: OSError."""
    content = read_content(path_of(descriptor))
    items = Items(seal_key)
    if content.kept is not None and _is_text(content.kept):
        for number, line in enumerate(io.BytesIO(content.kept), start=1):
            items.add(str(number), line, line.decode("utf-8").removesuffix("\n"))
    fingerprint = content_fingerprint("file", content.digest, seal_key)
    return Observation({**descriptor, "kind": "file"}, fingerprint, content.size, items.all(), items.texts())


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode("utf-8")
    except UnicodeDecodeError:
        return False
