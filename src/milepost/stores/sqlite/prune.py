"""Deletes whole ended runs; keeps key claims and one audit row each, removes files nobody points at any more.

Called by SqliteStore. A pruned run's id stays taken: its keys may be known to providers.
"""

from __future__ import annotations

from collections.abc import Sequence
from sqlite3 import Connection

from milepost.artifacts.files import ArtifactFiles
from milepost.stores.sqlite.connection import Writer
from milepost.stores.sqlite.queries import SQL

_DELETIONS = ("delete_answers", "delete_questions", "delete_artifacts", "delete_records", "delete_run")


def prune(writer: Writer, files: ArtifactFiles, run_ids: Sequence[str], at: str) -> int:
    """Prune those of the runs that have ended; return how many. Crash: each run whole or gone, files perhaps left."""
    return sum(_prune_run(writer, files, run_id, at) for run_id in run_ids)


def _prune_run(writer: Writer, files: ArtifactFiles, run_id: str, at: str) -> bool:
    def delete(connection: Connection) -> list[str] | None:
        if connection.execute(SQL["keep_audit"], {"run_id": run_id, "at": at}).rowcount != 1:
            return None
        digests = [digest for (digest,) in connection.execute(SQL["files_of_run"], (run_id,))]
        for name in _DELETIONS:
            connection.execute(SQL[name], (run_id,))
        return digests

    digests = writer.transaction("prune", delete)
    for digest in digests or ():
        _remove_unwanted(writer, files, digest)
    return digests is not None


def _remove_unwanted(writer: Writer, files: ArtifactFiles, digest: str) -> None:
    """Remove a file no run points at. Crash: the file is there or not; no row points at it.

    Inside a write transaction, where no other process can begin to point at it; a batch that comes after
    finds the file gone and is refused.
    """

    def remove(connection: Connection) -> None:
        if not connection.execute(SQL["file_wanted"], (digest,)).fetchone():
            files.remove(digest)

    writer.transaction("prune files", remove)
