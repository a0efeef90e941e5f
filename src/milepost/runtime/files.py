"""The files of an output: kept by content, put back when they are gone, never overwritten."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from milepost.artifacts.durable import sync
from milepost.artifacts.files import put_out
from milepost.protocol.ops import Artifact
from milepost.records.canonical import digest
from milepost.records.model import ARTIFACT_ROW_MAX, Pointer
from milepost.regular import is_a_stores, refuse_stores
from milepost.runtime.keeping import Artifacts

_MEDIA_TYPE = "application/octet-stream"


def keep_path(kept: Artifacts, path: Path, artifacts: list[Artifact]) -> dict[str, Any]:
    """Keep a file, or a folder as a manifest of its files; add what travels with the record to `artifacts`.

    What is kept is also forced to the disk where it is, with the folders that name it: a record says that the file
    is there, and a power cut must not make it empty or take it away.
    Crash: artifact files that no record points at, which `doctor` lists; what the body left is as it was.
    """
    _sync_names(path)
    if path.is_dir():
        files = [_keep_file(kept, file, artifacts, str(file.relative_to(path))) for file in _files_in(path)]
        return {"path": str(path), "kind": "folder", "files": files}
    return {**_keep_file(kept, path, artifacts, str(path)), "kind": "file"}


def _sync_names(path: Path) -> None:
    """Force the folders that lead to a path to the disk, and those inside it."""
    inner = [Path(root) for root, _, _ in os.walk(path)]
    for folder in (*inner, *path.parents):
        with suppress(PermissionError):  # a folder that we may pass and not read was not made by the body
            sync(folder)


def _files_in(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not is_a_stores(root, name))
        yield from (Path(root, name) for name in sorted(names) if not is_a_stores(root, name))


def _keep_file(kept: Artifacts, file: Path, artifacts: list[Artifact], shown: str) -> dict[str, Any]:
    refuse_stores(os.stat(file), str(file))
    sync(file)
    if kept.files is None or os.stat(file).st_size <= ARTIFACT_ROW_MAX:
        data = file.read_bytes()
        pointer = Pointer(digest(data), len(data), _MEDIA_TYPE)
        artifacts.append(Artifact(pointer, data))
    else:
        name, size = kept.files.copy_in(file)
        pointer = Pointer(name, size, _MEDIA_TYPE, "file")
        artifacts.append(Artifact(pointer, None))
    return {"path": shown, "mode": os.stat(file).st_mode & 0o777, **pointer.to_json()}


def put_back(kept: Artifacts, entry: Mapping[str, Any]) -> None:
    """Put a file or folder of an output back where it was. What is there is left alone.

    Crash: some files of a folder are back, each whole; the next resume puts back the rest.
    """
    if entry["kind"] == "file":
        _put_back_file(kept, entry, Path(entry["path"]))
        return
    Path(entry["path"]).mkdir(parents=True, exist_ok=True)
    for file in entry["files"]:
        _put_back_file(kept, file, Path(entry["path"], file["path"]))


def _put_back_file(kept: Artifacts, entry: Mapping[str, Any], target: Path) -> None:
    if os.path.lexists(target):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    pointer = Pointer(entry["digest"], entry["size"], entry["media_type"], entry["where"])
    if pointer.where == "file" and kept.files is not None:
        kept.files.copy_out(pointer.digest, target)
    else:
        put_out((kept.load(pointer, f"file {target}"),), pointer.digest, target)
    target.chmod(entry["mode"])
