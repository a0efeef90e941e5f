"""How bytes become artifacts: beside their record up to 64 KiB, else a durable file first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from milepost.protocol.ops import Artifact, Keep, KeepFiles, Steps
from milepost.records.canonical import canonical, digest
from milepost.records.model import ARTIFACT_ROW_MAX, Pointer
from milepost.records.paths import find_paths

JSON = "application/json"


def beside(data: bytes, media_type: str = JSON) -> Artifact:
    """Return bytes as an artifact that travels with its record."""
    return Artifact(Pointer(digest(data), len(data), media_type), data)


def small_or_none(encoded: bytes) -> Artifact | None:
    """Return the arguments as an artifact beside the record; none for `{}` and for what is too large for a row."""
    return None if encoded == b"{}" or len(encoded) > ARTIFACT_ROW_MAX else beside(encoded)


def keep_bytes(data: bytes, media_type: str = JSON) -> Steps[Artifact]:
    """Return bytes as an artifact: beside its record up to 64 KiB, else a durable file first.

    Crash: perhaps a file that no record points at, which `doctor` lists.
    """
    if len(data) > ARTIFACT_ROW_MAX:
        kept: Artifact = yield Keep(data, media_type)
        return kept
    return beside(data, media_type)


def keep_contents(value: Any, artifacts: list[Artifact]) -> Steps[list[dict[str, Any]]]:
    """Make the files of an output durable; return their manifest entries. Crash: as `keep_bytes`."""
    paths = [str(path) for _, path in find_paths(value)]
    if not paths:
        return []
    entries, contents = yield KeepFiles(paths)
    artifacts.extend(contents)
    return entries  # type: ignore[no-any-return]  # what KeepFiles answers


def keep_manifest(entries: Sequence[dict[str, Any]], artifacts: list[Artifact]) -> Steps[Pointer | None]:
    """Keep a list of files or sources; return the pointer to it, None when it is empty. Crash: as `keep_bytes`."""
    if not entries:
        return None
    manifest = yield from keep_bytes(canonical([*entries]))
    artifacts.append(manifest)
    return manifest.pointer


def keep_files(value: Any, artifacts: list[Artifact]) -> Steps[Pointer | None]:
    """Make the files of an output durable; return the pointer to their manifest. Crash: as `keep_bytes`."""
    return (yield from keep_manifest((yield from keep_contents(value, artifacts)), artifacts))
