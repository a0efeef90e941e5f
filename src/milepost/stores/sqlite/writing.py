"""Writes batches of many runs in one transaction: fenced run by run, all durable together.

A run that lost its lease writes nothing and harms no other; a batch that does not fit is left out and the
rest committed; a commit that fails is *cannot tell* and never repeated. Called by the committer only.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TypeAlias

from milepost.errors import LeaseLost, StoreUnavailable
from milepost.stores.contract import Batch, Progress, StoredArtifact
from milepost.stores.sqlite.connection import Writer
from milepost.stores.sqlite.faults import reason_of
from milepost.stores.sqlite.queries import SQL

_ADVANCE, _PROGRESS = SQL["advance_run"], SQL["advance_run_and_progress"]
_RECORD, _ARTIFACT = SQL["append_record"], SQL["keep_artifact"]
_QUESTION, _CLAIM, _TOKEN = SQL["put_question"], SQL["settle_claim"], SQL["token"]

LeaseKey: TypeAlias = tuple[str, int]
"""Run id and token: what a batch is written under."""

_BAD_VALUES = (
    sqlite3.IntegrityError,
    sqlite3.ProgrammingError,
    sqlite3.InterfaceError,
    sqlite3.DataError,
    OverflowError,
    UnicodeError,
)
"""What SQLite says about the values of one statement, not about its file."""


class DoesNotFit(Exception):
    """A batch cannot follow what is stored: a fault of this run only."""


class BatchWriter:
    """Commits batches for the committer; remembers the leases nothing more may be written under."""

    def __init__(self, writer: Writer, file_of: Callable[[str], Path]) -> None:
        self._writer = writer
        self._file_of = file_of
        self._poisoned: dict[LeaseKey, str] = {}

    def commit(self, batches: Sequence[Batch]) -> list[BaseException | None]:
        """Write all batches in one transaction and say how each fared.

        Crash: of each run a prefix of its batches; those reported None are all there.
        """
        groups: dict[LeaseKey, list[Batch]] = {}
        for batch in batches:
            groups.setdefault((batch.run_id, batch.token), []).append(batch)
        lost = self._write(groups)
        if not lost and not self._poisoned:
            return [None] * len(batches)
        return [self._verdict((batch.run_id, batch.token), lost) for batch in batches]

    def forgive(self, run_id: str) -> None:
        """Forget what failed under older leases: the run was acquired anew and is read again."""
        for key in [key for key in self._poisoned if key[0] == run_id]:
            del self._poisoned[key]

    def _verdict(self, key: LeaseKey, lost: set[LeaseKey]) -> BaseException | None:
        if key in lost:
            return LeaseLost()
        if key in self._poisoned:
            return StoreUnavailable(location=self._writer.location, operation="append", reason=self._poisoned[key])
        return None

    def _write(self, groups: dict[LeaseKey, list[Batch]]) -> set[LeaseKey]:
        """Write what may be written; again without it when a group does not fit. Return the fenced ones."""
        while True:
            live = groups
            if self._poisoned:
                live = {key: group for key, group in groups.items() if key not in self._poisoned}
            if not live:
                return set()
            unfit, lost = self._attempt(live)
            if unfit is None:
                return lost

    def _attempt(self, groups: dict[LeaseKey, list[Batch]]) -> tuple[LeaseKey | None, set[LeaseKey]]:
        """Try one transaction; return the group that did not fit (nothing was written), and the fenced ones."""
        writer, lost = self._writer, set()
        with writer.turn:
            key: LeaseKey | None = None
            try:
                writer.begin()
                for key, group in groups.items():
                    if not self._write_run(writer.connection, key, group):
                        lost.add(key)
                key = None
                writer.commit()
            except BaseException as error:  # noqa: BLE001 — _blame raises again what is not foreseen
                writer.roll_back()
                return self._blame(error, key, groups), lost
        return None, lost

    def _blame(
        self, error: BaseException, key: LeaseKey | None, groups: dict[LeaseKey, list[Batch]]
    ) -> LeaseKey | None:
        """Poison the run whose values were at fault, or every run of the commit. Re-raises what is not foreseen."""
        if key is not None and isinstance(error, (DoesNotFit, *_BAD_VALUES)):
            self._poisoned[key] = str(error) if isinstance(error, DoesNotFit) else reason_of(error)
            return key
        for each in groups:
            self._poisoned[each] = reason_of(error)
        if not isinstance(error, (sqlite3.Error, OSError)):
            raise error
        return None

    def _write_run(self, connection: sqlite3.Connection, key: LeaseKey, group: list[Batch]) -> bool:
        """Write one run's batches; False when the token is not the newest. Raises: DoesNotFit, sqlite3.Error."""
        before = group[0].head.seq - len(group[0].records)
        rows: list[tuple[object, ...]] = []
        others: list[StoredArtifact] = []
        for batch in group:
            others += _add_rows(batch, key, rows)
        if group[-1].head.seq - before != len(rows):
            raise DoesNotFit(f"run {key[0]}: heads and records of its batches disagree")
        if not self._advance(connection, key, group, before):
            return False
        if rows:  # progress may move without a record
            _expect(len(rows), connection.executemany(_RECORD, rows))
        self._keep_artifacts(connection, key, others)
        for batch in group:
            if batch.questions or batch.claims:
                _write_questions_and_claims(connection, key, batch)
        return True

    def _advance(self, connection: sqlite3.Connection, key: LeaseKey, group: list[Batch], before: int) -> bool:
        head, progress = group[-1].head, _newest_progress(group)
        if progress is None:
            done = connection.execute(_ADVANCE, (head.seq, head.seal, *key, before))
        else:
            done = connection.execute(_PROGRESS, (head.seq, head.seal, *_shown(progress), *key, before))
        if done.rowcount == 1:
            return True
        row = connection.execute(_TOKEN, (key[0],)).fetchone()
        if row is not None and row[0] == key[1]:
            raise DoesNotFit(f"run {key[0]}: its journal does not end at record {before}")
        return False

    def _keep_artifacts(
        self, connection: sqlite3.Connection, key: LeaseKey, artifacts: Sequence[StoredArtifact]
    ) -> None:
        for artifact in artifacts:
            # A prune in another process may have removed the file before this row could protect it.
            if artifact.data is None and not self._file_of(artifact.digest).exists():
                raise DoesNotFit(f"run {key[0]}: the file of artifact {artifact.digest} is gone")
            values = (artifact.digest, artifact.size, artifact.media_type, artifact.data, *key)
            connection.execute(_ARTIFACT, values)


def _add_rows(batch: Batch, key: LeaseKey, rows: list[tuple[object, ...]]) -> Sequence[StoredArtifact]:
    """Add the rows of a batch's records, the n-th with its n-th small artifact; return the artifacts no row carries."""
    small = [artifact for artifact in batch.artifacts if artifact.data is not None]
    for record, artifact in zip_longest(batch.records, small[: len(batch.records)]):
        carried = _NOTHING if artifact is None else (artifact.digest, artifact.media_type, artifact.data)
        rows.append((*record, *carried, *key))
    if len(small) == len(batch.artifacts) <= len(batch.records):
        return ()
    files = [artifact for artifact in batch.artifacts if artifact.data is None]
    return [*files, *small[len(batch.records) :]]


_NOTHING = (None, None, None)


def _newest_progress(group: Sequence[Batch]) -> Progress | None:
    for batch in reversed(group):
        if batch.progress is not None:
            return batch.progress
    return None


def _shown(progress: Progress) -> tuple[str | int, ...]:
    return (
        str(progress.status),
        progress.at,
        progress.verified_count,
        progress.applied_count,
        progress.next_action,
        progress.detail,
        progress.cost,
        progress.tokens,
    )


def _write_questions_and_claims(connection: sqlite3.Connection, key: LeaseKey, batch: Batch) -> None:
    for sql, rows in ((_QUESTION, _question_rows(batch, key)), (_CLAIM, _claim_rows(batch, key))):
        for values in rows:
            _expect(1, connection.execute(sql, values))


def _question_rows(batch: Batch, key: LeaseKey) -> Iterator[tuple[object, ...]]:
    for q in batch.questions:
        yield q.question_id, q.kind, q.path, q.sentence, q.asked_at, q.body, q.closed, *key


def _claim_rows(batch: Batch, key: LeaseKey) -> Iterator[tuple[object, ...]]:
    for c in batch.claims:
        ended = (c.outcome, c.ref, c.result, c.media_type, c.seal)
        yield c.path, c.request_digest, c.at, *ended, c.key, c.run_id, *key


def _expect(count: int, cursor: sqlite3.Cursor) -> None:
    """See that a statement changed what it was meant to change."""
    if cursor.rowcount != count:
        raise DoesNotFit(f"a statement changed {cursor.rowcount} rows instead of {count}")
