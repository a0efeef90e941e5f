"""How bytes become artifacts: beside their record up to 64 KiB, else a durable file first. Pure."""

from __future__ import annotations

from typing import Any

from milepost.protocol.ops import Artifact, Keep, KeepFiles, Steps
from milepost.protocol.questions import small_artifact
from milepost.records.canonical import digest
from milepost.records.model import ARTIFACT_ROW_MAX, Pointer
from milepost.records.paths import find_paths


def small_or_none(encoded: bytes) -> Artifact | None:
    """Return the arguments as an artifact beside the record; none for `{}` and for what is too large for a row."""
    if encoded == b"{}" or len(encoded) > ARTIFACT_ROW_MAX:
        return None
    return Artifact(Pointer(digest(encoded), len(encoded)), encoded)


def keep_bytes(data: bytes, media_type: str) -> Steps[Artifact]:
    """Return bytes as an artifact: beside its record up to 64 KiB, else a durable file first.

    Crash: perhaps a file that no record points at, which `doctor` lists.
    """
    if len(data) > ARTIFACT_ROW_MAX:
        kept: Artifact = yield Keep(data, media_type)
        return kept
    return Artifact(Pointer(digest(data), len(data), media_type), data)


def keep_files(value: Any, artifacts: list[Artifact]) -> Steps[tuple[list[dict[str, Any]], Pointer | None]]:
    """Make the files of an output durable; return their manifest entries and the pointer to the manifest.

    Crash: as `keep_bytes`.
    """
    entries = yield from keep_contents(value, artifacts)
    if not entries:
        return [], None
    manifest = small_artifact(entries)
    artifacts.append(manifest)
    return entries, manifest.pointer


def keep_contents(value: Any, artifacts: list[Artifact]) -> Steps[list[dict[str, Any]]]:
    """Make the files of an output durable; return their manifest entries. Crash: as `keep_bytes`."""
    paths = [str(path) for _, path in find_paths(value)]
    if not paths:
        return []
    entries, contents = yield KeepFiles(paths)
    artifacts.extend(contents)
    return entries  # type: ignore[no-any-return]  # what KeepFiles answers
