"""Examines a store for `doctor`: settings, integrity, schema, permissions, space, orphans, dead holders.

Only reads; each finding says what was looked at, what is there, and what to do. Called by SqliteStore.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from milepost.artifacts.files import ArtifactFiles
from milepost.records.canonical import digest
from milepost.stores.contract import Diagnosis
from milepost.stores.sqlite.connection import Reader, settings
from milepost.stores.sqlite.locks import LockFiles
from milepost.stores.sqlite.opening import migrate, schema_known, unwritable
from milepost.stores.sqlite.queries import SQL

FREE_BYTES_MIN = 64 * 1024 * 1024
"""Less free space than this is worth a word before a run stops for want of it."""
OBJECTS = "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
NAMED_MAX = 5
"""Things a diagnosis names before it only counts."""


def check(reader: Reader, path: Path, files: ArtifactFiles, locks: LockFiles, *, no_room: bool) -> list[Diagnosis]:
    """Return every diagnosis, good ones too; with `no_room` of a store that a full disk let be opened for reading only.

    Raises: StoreUnavailable when the file cannot be read at all.
    """
    return [
        *(_no_room(path) if no_room else _settings(reader, path)),
        _integrity(reader),
        _references(reader),
        *_copies(reader),
        _schema(reader),
        _strangers(reader, path),
        *_permissions(path, files.folder),
        *_space(path),
        *_files(reader, files),
        _unfinished(path, files),
        *_leases(reader, locks),
    ]


def _no_room(path: Path) -> Iterator[Diagnosis]:
    hint = "Free space; `milepost prune` needs some itself. Until then runs can be looked at and verified only."
    yield Diagnosis("writable", False, f"the disk of {path} is full: the store is open for reading", hint)


def _settings(reader: Reader, path: Path) -> Iterator[Diagnosis]:
    place = unwritable(path)
    if place is not None:
        hint = (
            f"Make {place} writable. Until then runs can be looked at and verified, not started, resumed or answered."
        )
        yield Diagnosis("writable", False, f"{place} is not writable: the store is read-only", hint)
        return
    with reader.lock:
        found = settings(reader.connection)
    for name, expected, value in found:
        yield Diagnosis(
            name, expected == value, value, f"Expected {expected}. Another program changed the file's mode."
        )


def _integrity(reader: Reader) -> Diagnosis:
    found = "; ".join(str(row[0]) for row in reader.all("check", "PRAGMA integrity_check(5)"))
    hint = "The file is damaged: keep a copy, then `milepost verify RUN` for each run."
    return Diagnosis("integrity", found == "ok", found, hint)


def _references(reader: Reader) -> Diagnosis:
    found = reader.all("check", "PRAGMA foreign_key_check")
    hint = "Rows point at runs that are gone: the file was edited by another program."
    return Diagnosis("references", not found, f"{len(found)} dangling rows", hint)


def _copies(reader: Reader) -> Iterator[Diagnosis]:
    """Prove every copy of an artifact that lies in a row: a good one elsewhere does not make it good."""
    hint = "Bytes of the store were changed: `milepost fork RUN --from STEP` goes on from before that record."
    count, bad = 0, []
    with reader.lock:
        for run_id, seq, name, data in reader.connection.execute(SQL["copies"]):
            count += 1
            if not isinstance(data, bytes) or digest(data) != name:
                bad.append((run_id, f"record {seq}" if seq else "a row beside the journal", name))
    for run_id, place, name in bad:
        found = f"{place} of run {run_id} carries bytes that are not those of digest {name[:12]}…"
        yield Diagnosis("stored copies", False, found, hint, run_id)
    if not bad:
        yield Diagnosis("stored copies", True, f"{count} copies have their digests")


def _schema(reader: Reader) -> Diagnosis:
    found = reader.one("check", SQL["schema_version"])[0]
    return Diagnosis("schema", found == schema_known(), f"version {found}", f"Expected {schema_known()}.")


def _strangers(reader: Reader, path: Path) -> Diagnosis:
    """Name tables, triggers and views in the file that no migration made: a trigger changes what is written."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        migrate(fresh, str(path))
        ours = fresh.execute(OBJECTS).fetchall()
    strange = [f"{kind} {name}" for kind, name in reader.all("check", OBJECTS) if (kind, name) not in ours]
    hint = f"Somebody else made them. Look (`sqlite3 {path} .schema`), and drop what nobody you trust put there."
    return Diagnosis("foreign objects", not strange, _named(strange, "that no store has"), hint)


def _permissions(path: Path, folder: Path) -> Iterator[Diagnosis]:
    is_read_only = unwritable(path) is not None  # which is said by itself, and no chmod changes it
    for place in (path, path.parent, folder):
        if place.exists():
            mode = place.stat().st_mode & 0o777
            usable = (is_read_only or os.access(place, os.W_OK)) and not mode & 0o077
            hint = f"Make it readable and writable by its owner only: chmod go= {place}"
            yield Diagnosis("permissions", usable, f"{place} is {mode:04o}", hint)


def _space(path: Path) -> Iterator[Diagnosis]:
    if unwritable(path) is None:
        free = shutil.disk_usage(path.parent).free
        hint = "Free space, or `milepost prune` ended runs."
        yield Diagnosis("free space", free >= FREE_BYTES_MIN, f"{free // 2**20} MiB", hint)


def _files(reader: Reader, files: ArtifactFiles) -> Iterator[Diagnosis]:
    # The folder is listed first: a file written and recorded in between is then wanted, not missing.
    there = files.sizes()
    wanted = dict(reader.all("check", SQL["all_files"]))
    missing = [digest for digest, size in wanted.items() if files.size(digest) != size]
    hint = "Restore them from a backup, or fork the runs from before those steps."
    yield Diagnosis("artifact files", not missing, _named(missing, "missing or of another size"), hint)
    orphans = [digest for digest in there if digest not in wanted]
    hint = f"Not recorded (yet); if no run is active they can be deleted from {files.folder}."
    yield Diagnosis("orphan files", not orphans, _named(orphans, "without a record"), hint)


def _unfinished(path: Path, files: ArtifactFiles) -> Diagnosis:
    found = [str(p) for p in (*files.unfinished(), *path.parent.glob(f"{path.name}.*.new*"))]
    hint = "Left by a process that died; if no run is active they can be deleted."
    return Diagnosis("unfinished files", not found, _named(found, "unfinished"), hint)


def _leases(reader: Reader, locks: LockFiles) -> Iterator[Diagnosis]:
    held = reader.all("check", SQL["held_runs"])
    dead = [run_id for run_id, token, *_ in held if locks.is_free(run_id, token)]
    hint = "Their processes died: `milepost resume RUN` goes on."
    yield Diagnosis("leases", not dead, _named(dead, "held by a dead process"), hint)
    left = [path.name for path in locks.leftovers((run_id, token) for run_id, token, *_ in held)]
    yield Diagnosis("lock files", not left, _named(left, "left over"), f"They can be deleted from {locks.folder}.")


def _named(things: list[str], what: str) -> str:
    more = "" if len(things) <= NAMED_MAX else ", …"
    names = ", ".join(things[:NAMED_MAX])
    return f"{len(things)} {what}: {names}{more}" if things else f"none {what}"
