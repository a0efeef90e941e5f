"""Writes batches of many runs in one transaction: fenced run by run, all durable together.

A run that lost its lease writes nothing and harms no other; a batch that does not fit is left out and the
rest committed; a commit that fails is *cannot tell* and never repeated. Called by the committer only.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from milepost.errors import LeaseLost, StoreUnavailable
from milepost.stores.contract import Batch, Progress, StoredArtifact
from milepost.stores.sqlite.connection import Writer
from milepost.stores.sqlite.faults import reason_of
from milepost.stores.sqlite.queries import SQL, ManyRows

_ARTIFACT, _QUESTION, _CLAIM, _TOKEN = (SQL[n] for n in ("keep_artifact", "put_question", "settle_claim", "token"))

_HEADS, _LINES = ManyRows("advance_runs", alone="advance_run"), ManyRows("append_records")

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
        with writer.gate:
            pass  # whoever waits for the turn there goes first
        with writer.turn:
            key: LeaseKey | None = None
            try:
                writer.begin()
                if len(groups) == 1 or not self._write_together(groups):
                    for key, group in groups.items():
                        if not self._write_run(key, group):
                            lost.add(key)
                    key = None
                writer.commit()
            except BaseException as error:  # noqa: BLE001 — _blame raises again what is not foreseen
                writer.roll_back()
                return self._blame(error, key, groups), lost
        return None, lost

    def _write_together(self, groups: dict[LeaseKey, list[Batch]]) -> bool:
        """Write all runs at once; False, with nothing written, when one of them is fenced or does not fit.

        Each statement gives up the interpreter and waits to have it back: two for each of many runs, while all
        their threads or tasks are at work, cost more than everything else in a commit.
        """
        try:
            if self._write_runs(groups):
                return True
        except (DoesNotFit, *_BAD_VALUES):
            pass  # which run it was is found out one by one
        self._writer.roll_back()
        self._writer.begin()
        return False

    def _write_run(self, key: LeaseKey, group: list[Batch]) -> bool:
        """Write one run's batches; False when the token is not the newest. Raises: DoesNotFit, sqlite3.Error."""
        if self._write_runs({key: group}):
            return True
        row = self._writer.connection.execute(_TOKEN, (key[0],)).fetchone()
        if row is not None and row[0] == key[1]:
            raise DoesNotFit(f"run {key[0]}: its journal does not end at record {_end_before(group)}")
        return False

    def _write_runs(self, groups: Mapping[LeaseKey, list[Batch]]) -> bool:
        """Write the batches of some runs; False when not all heads advanced. Raises: DoesNotFit, sqlite3.Error."""
        connection, rows = self._writer.connection, _Rows()
        for key, group in groups.items():
            rows.add(key, group)
        if _HEADS.execute(connection, rows.heads) != len(groups):
            return False
        _expect(rows.line_count, _LINES.execute(connection, rows.lines))
        for key, artifact in rows.artifacts:
            self._keep_artifact(key, artifact)
        for key, batch in rows.others:
            _write_questions_and_claims(connection, key, batch)
        return True

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

    def _keep_artifact(self, key: LeaseKey, artifact: StoredArtifact) -> None:
        # A prune in another process may have removed the file before this row could protect it.
        if artifact.data is None and not self._file_of(artifact.digest).exists():
            raise DoesNotFit(f"run {key[0]}: the file of artifact {artifact.digest} is gone")
        values = (artifact.digest, artifact.size, artifact.media_type, artifact.data, *key)
        self._writer.connection.execute(_ARTIFACT, values)


class _Rows:
    """What some runs add in a commit: the values of `advance_run` and `append_records`, row after row, and the rest."""

    __slots__ = ("artifacts", "heads", "line_count", "lines", "others")

    def __init__(self) -> None:
        self.heads: list[object] = []
        self.lines: list[object] = []
        self.line_count = 0
        self.artifacts: list[tuple[LeaseKey, StoredArtifact]] = []  # those no line carries
        self.others: list[tuple[LeaseKey, Batch]] = []  # those with questions or claims

    def add(self, key: LeaseKey, group: list[Batch]) -> None:
        """Add a run's batches. Raises: DoesNotFit when their heads and records disagree."""
        before, head, count, gives_back = _end_before(group), group[-1].head, 0, False
        for batch in group:
            count += len(batch.records)
            gives_back = gives_back or batch.gives_back
            self._add_lines(key, batch)
            if batch.questions or batch.claims:
                self.others.append((key, batch))
        if head.seq - before != count:
            raise DoesNotFit(f"run {key[0]}: heads and records of its batches disagree")
        self.line_count += count
        self.heads += (*head, gives_back, *_shown(group), *key, before)

    def _add_lines(self, key: LeaseKey, batch: Batch) -> None:
        """Add the lines of a batch's records, the n-th with its n-th small artifact; others stand alone."""
        carried = [artifact for artifact in batch.artifacts if artifact.data is not None] if batch.artifacts else []
        left = len(carried)
        for n, record in enumerate(batch.records):
            if n < left:
                digest, _, media_type, data = carried[n]
                self.lines += (*record, digest, media_type, data, *key)
            else:
                self.lines += (*record, None, None, None, *key)
        if batch.artifacts and (left < len(batch.artifacts) or left > len(batch.records)):
            alone = [artifact for artifact in batch.artifacts if artifact.data is None] + carried[len(batch.records) :]
            self.artifacts += [(key, artifact) for artifact in alone]


def _end_before(group: Sequence[Batch]) -> int:
    """Return the number of the record that a run's batches follow."""
    return group[0].head.seq - len(group[0].records)


def _shown(group: Sequence[Batch]) -> tuple[object, ...]:
    """Return what the list of runs shows from now on, in the order of `Progress`; None where it stays as it was."""
    for batch in reversed(group):
        if batch.progress is not None:
            return str(batch.progress.status), *batch.progress[1:]
    return _AS_BEFORE


_AS_BEFORE = (None,) * len(Progress._fields)


def _write_questions_and_claims(connection: sqlite3.Connection, key: LeaseKey, batch: Batch) -> None:
    for q in batch.questions:
        asked = (q.question_id, q.kind, q.path, q.sentence, q.asked_at, q.body, q.closed, *key)
        _expect(1, connection.execute(_QUESTION, asked).rowcount)
    for c in batch.claims:
        ended = (c.path, c.request_digest, c.at, c.outcome, c.ref, c.result, c.media_type, c.seal)
        _expect(1, connection.execute(_CLAIM, (*ended, c.key, c.run_id, *key)).rowcount)


def _expect(count: int, changed: int) -> None:
    """See that statements changed what they were meant to change."""
    if changed != count:
        raise DoesNotFit(f"a statement changed {changed} rows instead of {count}")
