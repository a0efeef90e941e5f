"""SqliteStore: the store contract on one SQLite file, its parts wired together.

Beside `NAME` live `NAME.locks/` (lock files) and `NAME.artifacts/` (artifacts too large for a row), so two
stores may share a folder. No rule lives here. Called by `locate`, the runtime's caller and tests.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from sqlite3 import Connection

from milepost.artifacts.files import ArtifactFiles
from milepost.errors import ForeignDatabase, StoreUnavailable
from milepost.records.model import RunStatus
from milepost.records.rows import AnswerRow, CancelRow, ClaimRow
from milepost.regular import keep_off
from milepost.stores.contract import (
    Batch,
    Diagnosis,
    Held,
    Holder,
    Lease,
    NewRun,
    Outline,
    QuestionRow,
    RunRow,
    StoredArtifact,
    StoredRecord,
    Ticket,
)
from milepost.stores.sqlite import inbox, rows
from milepost.stores.sqlite.carried import CarriedArtifacts
from milepost.stores.sqlite.committer import AppendTicket, Committer
from milepost.stores.sqlite.connection import Connect, Reader, Writer, connect_sqlite, connect_to_read, set_up, unusable
from milepost.stores.sqlite.faults import translated
from milepost.stores.sqlite.leases import Leases
from milepost.stores.sqlite.locks import LockFiles
from milepost.stores.sqlite.open_files import OPEN_FILES
from milepost.stores.sqlite.opening import migrate, not_writable, prepare, schema_known, schema_of, unwritable
from milepost.stores.sqlite.queries import SQL
from milepost.stores.sqlite.writing import BatchWriter


class SqliteStore:
    """A store in one SQLite file. Thread-safe; one object per process and file is enough.

    Args:
        path: the database file; its folder is created with it.
        create: make a new store when there is none. Without it, a store that cannot be written opens for reading.
        connect: opens a connection to the file it is given, in autocommit mode, usable from any thread.
        read_only: open it for reading although it can be written: what a full disk leaves.

    Crash: a new store is there whole or not at all.
    Raises: StoreMissing, StoreTooNew, ForeignDatabase, StoreLinked, StoreUnavailable; nothing is changed then.
    """

    def __init__(self, path: Path, *, create: bool, connect: Connect | None = None, read_only: bool = False) -> None:
        self.path = path.absolute()
        self.location = str(self.path)
        self.folder: Path | None = self.path.with_name(f"{self.path.name}.artifacts")
        self._files = ArtifactFiles(self.folder)
        self._locks = LockFiles(self.path.with_name(f"{self.path.name}.locks"))
        connect = connect or connect_sqlite
        with translated(self.location, "open"):
            prepare(self.path, create=create, connect=connect)
            self._open(connect, read_only)
        self._no_room = read_only
        self._carried = CarriedArtifacts(self._reader)
        batches = BatchWriter(self._writer, self._files.path)
        self._leases = Leases(self._writer, self._locks, batches)
        self._committer = Committer(batches.commit, self.location)
        self._newest: dict[str, AppendTicket] = {}  # of each run that is held here
        _open_stores.add(self)

    def _open(self, connect: Connect, read_only: bool) -> None:
        place = self.path if read_only else unwritable(self.path)
        with ExitStack() as undo:
            keep_off(self.path)
            self._use = OPEN_FILES.begin(self.path)
            undo.callback(OPEN_FILES.end, self._use)
            if place is None:
                writing, reading = self._connected(connect, undo)
            else:
                writing, reading = self._connected_to_read(place, undo)
            self._writer = Writer(writing, self.path)
            self._reader = Reader(reading, self.location)
            named = self._reader.one("open", SQL["store_id"])
            if named is None:
                raise ForeignDatabase(location=self.location, reason="it has our tables but not the store's own name")
            self.store_id: str = named[0]
            undo.pop_all()

    def _connected(self, connect: Connect, undo: ExitStack) -> tuple[Connection, Connection]:
        writing = undo.enter_context(closing(connect(self.location)))
        self._schema(writing)  # refuses a newer store, too, before any setting is touched
        set_up(writing, self.location)
        migrate(writing, self.location)
        reading = undo.enter_context(closing(connect(self.location)))
        set_up(reading, self.location)
        return writing, reading

    def _connected_to_read(self, place: Path, undo: ExitStack) -> tuple[Connection, Connection]:
        reading = undo.enter_context(closing(connect_to_read(self.location)))
        found = self._schema(reading)
        if found < schema_known():
            raise not_writable(self.path, f"bring schema {found} up to {schema_known()}", place)
        return unusable(lambda: not_writable(self.path, "write", place)), reading

    def _schema(self, connection: Connection) -> int:
        found = schema_of(connection, self.location)
        if found == 0:
            raise ForeignDatabase(location=self.location, reason="it has our application_id but not our tables")
        return found

    # ── runs and leases ──

    def create_run(self, run: NewRun) -> Lease | None:
        """Create a run held by `run.holder`, see `Store`. Crash: no run, or one without records."""
        return self._leases.create_run(run)

    def run(self, run_id: str) -> RunRow | None:
        """Return the run's row, None when there is none."""
        row = self._reader.one("read run", SQL["run"], (run_id,))
        return None if row is None else rows.run_row(row)

    def was_pruned(self, run_id: str) -> bool:
        """Say whether a run of this id was here and was pruned."""
        return self._reader.one("read run", SQL["pruned"], (run_id,)) is not None

    def runs(
        self,
        *,
        task: str | None = None,
        status: RunStatus | None = None,
        family: str | None = None,
        search: str | None = None,
        limit: int = 100,
        before: str | None = None,
    ) -> list[RunRow]:
        """Return runs, newest start first, see `Store`; `before` is a run id to page on from."""
        wanted = {"task": task, "status": None if status is None else str(status), "family": family, "search": search}
        found = self._reader.all("list runs", SQL["runs"], {**wanted, "limit": limit, "before": before})
        return [rows.run_row(row) for row in found]

    def acquire(self, run_id: str, holder: Holder, *, still: Held | None = None) -> Lease | Held | None:
        """Take a run, or say who holds it, see `Store`. Crash: the lease of before, or one whose lock is free."""
        return self._leases.acquire(run_id, holder, still)

    def renew(self, lease: Lease, at: str) -> bool:
        """Count one sign of life; False when a later token exists. Crash: counted or not."""
        return self._leases.renew(lease, at)

    def release(self, lease: Lease) -> None:
        """Commit what is appended to the run and give it back. Crash: given back, or held by a dead process."""
        try:
            newest = self._newest.pop(lease.run_id, None)
            if newest is not None:
                self._committer.settle(newest)
            if newest is not None and newest.gave_back(lease):
                self._leases.forget(lease)
            else:
                self._leases.release(lease)
        except BaseException:
            self._leases.free(lease)
            raise

    # ── the journal ──

    def append(self, batch: Batch) -> Ticket:
        """Take a batch for the next commit. Crash: none of it, or all of it and all before it."""
        ticket = self._newest[batch.run_id] = self._committer.append(batch)
        return ticket

    def records(
        self, run_id: str, *, chain: str | None = None, after: int = 0, limit: int | None = None
    ) -> list[StoredRecord]:
        """Return records with seq > after in order: of one chain ('' is the task's), or of all (None); see `Store`."""
        most = -1 if limit is None else limit
        if chain is None:
            found = self._reader.all("read journal", SQL["records"], (run_id, after, most))
        elif chain:
            found = self._reader.all("read journal", SQL["inner_chain"], (run_id, after, chain, most))
        else:
            found = self._reader.all("read journal", SQL["task_chain"], (run_id, after, most))
        return list(map(rows.record, found))

    def outline(self, run_id: str) -> Outline:
        """Return the place of every record that is really there, and the records of the task's own chain."""
        found = rows.OutlineRows()
        for page in self._reader.pages("read journal", SQL["outline"], (rows.SMALL_BYTES, run_id)):
            found.take(page)
        self._carried.learn(run_id, len(found.outline.places), found.carried)
        return found.outline

    def artifacts(self, run_id: str, digests: Sequence[str]) -> Mapping[str, StoredArtifact]:
        """Return those of the run's artifacts that are there, in one query. Bytes are not checked here."""
        return self._carried.read(run_id, digests)

    def data_version(self) -> int:
        """Return a number that differs once anybody has committed anything. Not of the contract; the console looks."""
        return int(self._reader.one("look for changes", SQL["data_version"])[0])

    # ── people ──

    def questions(
        self, run_id: str | None = None, *, question_id: str | None = None, closed: bool = False
    ) -> list[QuestionRow]:
        """Return open questions (with closed=True all), oldest first, of one run or of all; or one, open or not."""
        if question_id is not None:
            found = self._reader.all("read question", SQL["question"], (question_id,))
        else:
            found = self._reader.all("read questions", SQL["questions"], {"run_id": run_id, "closed": closed})
        return [rows.question(row) for row in found]

    def asks(self, run_id: str, body: bytes) -> bool:
        """Say whether a record of the task's own chain is a question of exactly this content."""
        return self._reader.one("read journal", SQL["question_asked"], (run_id, body)) is not None

    def answer(self, answer: AnswerRow) -> AnswerRow:
        """Record an answer; return the one that stands. Crash: as if not given, or given. Raises: QuestionUnknown."""
        return inbox.answer(self._writer, answer)

    def answers(self, run_id: str, question_id: str | None = None) -> list[AnswerRow]:
        """Return all answers of a run, or to one of its questions, first ones and later ones, oldest first."""
        wanted = {"run_id": run_id, "question_id": question_id}
        return [AnswerRow(*row) for row in self._reader.all("read answers", SQL["answers"], wanted)]

    def cancel(self, asked: CancelRow) -> None:
        """Ask a run to end; the first request stands. Crash: asked or not asked."""
        inbox.cancel(self._writer, asked)

    def claim(self, claim: ClaimRow, token: int, *, instead_of: str | None = None) -> ClaimRow:
        """Own a key, or return its owner's row. Crash: claimed without an intent, or not. Raises: LeaseLost."""
        return inbox.claim(self._writer, claim, token, instead_of)

    # ── the store itself ──

    def prune(self, run_ids: Sequence[str], at: str) -> int:
        """Delete whole ended runs; return how many. Their ids stay taken. Crash: each whole or gone."""
        from milepost.stores.sqlite.prune import prune  # here, as `check`: no run needs it

        return prune(self._writer, self._files, run_ids, at)

    def check(self) -> list[Diagnosis]:
        """Examine the store for `doctor`. Changes nothing."""
        from milepost.stores.sqlite.check import check

        with translated(self.location, "check"):
            return check(self._reader, self.path, self._files, self._locks, no_room=self._no_room)

    def close(self) -> None:
        """Commit what is appended and let go of everything, leases too. Idempotent. Crash: as `append`."""
        self._committer.close()
        _open_stores.discard(self)
        with translated(self.location, "close"):
            self._reader.close()
            self._writer.close()
            self._locks.drop_all()
        OPEN_FILES.end(self._use)

    def forget_in_child(self) -> None:
        """Make a forked child's copy refuse to work, and let its parent's locks die with the parent."""
        self._committer.forget_in_child()
        self._writer.forget_in_child()
        self._reader.forget_in_child()
        self._locks.drop_all()


_open_stores: set[SqliteStore] = set()
"""Strong on purpose: a store its owner forgot still commits what was appended to it."""


def _forget_all_in_child() -> None:
    for store in list(_open_stores):
        store.forget_in_child()
    _open_stores.clear()


def _close_all_at_exit() -> None:
    """Commit what nobody waited for; an error has nobody left to tell, and its records count as not written."""
    for store in list(_open_stores):
        with suppress(StoreUnavailable):
            store.close()


os.register_at_fork(after_in_child=_forget_all_in_child)
atexit.register(_close_all_at_exit)
