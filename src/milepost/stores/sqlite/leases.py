"""Who may write to a run: leases with growing tokens in the `runs` table, proof of death from lock files.

Every grant and every check happens inside one write transaction, so two starters exclude each other
whether they are threads, stores or processes; none is flushed by itself (`Writer.transaction` says why).
Reads no clock. Called by SqliteStore.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TypeVar

from milepost.records.model import RunStatus
from milepost.stores.contract import Held, Holder, Lease, NewRun
from milepost.stores.sqlite import rows
from milepost.stores.sqlite.connection import Writer
from milepost.stores.sqlite.locks import LockFiles
from milepost.stores.sqlite.queries import SQL
from milepost.stores.sqlite.writing import BatchWriter

R = TypeVar("R")


class Leases:
    """Grants, renews and takes back leases."""

    def __init__(self, writer: Writer, locks: LockFiles, batches: BatchWriter) -> None:
        self._writer = writer
        self._locks = locks
        self._batches = batches

    def create_run(self, run: NewRun) -> Lease | None:
        """Create a run held by its creator; None when the id is taken, be it by a run that was pruned.

        Crash: no run, or one without records whose lock is free.
        """

        def create(connection: sqlite3.Connection) -> Lease | None:
            if connection.execute(SQL["pruned"], (run.run_id,)).fetchone():
                return None
            if connection.execute(SQL["create_run"], _new_values(run)).rowcount != 1:
                return None
            return Lease(run.run_id, 1, run.holder)

        return self._grant("create run", create)

    def acquire(self, run_id: str, holder: Holder, still: Held | None) -> Lease | Held | None:
        """Grant the next token, or say who holds the run; None when there is no such run.

        Crash: the lease of before, or a new one whose lock is free.
        """

        def succeed(connection: sqlite3.Connection) -> Lease | Held | None:
            found = _newest(connection, run_id)
            if found is None:
                return None
            token, held = found
            if held is not None and not self._may_succeed(held, holder, still):
                return held
            connection.execute(SQL["take_lease"], (*_holder_values(holder), holder.since, run_id, token))
            return Lease(run_id, token + 1, holder)

        return self._grant("acquire", succeed)

    def _grant(self, operation: str, grant: Callable[[sqlite3.Connection], R]) -> R:
        """Commit a grant with the lock of its lease, which is let go of when nobody hears of the lease."""
        lease: Lease | None = None

        def locked(connection: sqlite3.Connection) -> R:
            nonlocal lease
            granted = grant(connection)
            if isinstance(granted, Lease):
                lease = granted  # first: what is locked must be known here, whatever comes between
                self._locks.take(lease.run_id, lease.token)
            return granted

        try:
            granted = self._writer.transaction(operation, locked, flushes=False)
            if lease is not None and lease.token > 1:
                self._locks.drop(lease.run_id, lease.token - 1)
                self._batches.forgive(lease.run_id)
            return granted
        except BaseException:
            if lease is not None:  # it was not committed, or perhaps was
                self._locks.free(lease.run_id, lease.token)
            raise

    def renew(self, lease: Lease, at: str) -> bool:
        """Count one sign of life; False when a later token exists. Crash: counted or not."""
        values = (at, lease.run_id, lease.token)
        done = self._writer.transaction("renew lease", lambda c: c.execute(SQL["renew_lease"], values), flushes=False)
        return done.rowcount == 1

    def release(self, lease: Lease) -> None:
        """Give a run back. Crash: given back, or still held by a process whose lock is free, which says the same.

        Raises: StoreUnavailable when the row could not be written.
        """
        values = (lease.run_id, lease.token)
        self._writer.transaction("release lease", lambda c: c.execute(SQL["release_lease"], values), flushes=False)
        self.forget(lease)

    def forget(self, lease: Lease) -> None:
        """Drop the lock of a lease whose row says that it was given back. Crash: a free file is left."""
        self._locks.drop(lease.run_id, lease.token)

    def free(self, lease: Lease) -> None:
        """Let go of the lock of a lease whose row may say held: the next starter is told that its holder is gone."""
        self._locks.free(lease.run_id, lease.token)

    def _may_succeed(self, held: Held, holder: Holder, still: Held | None) -> bool:
        if still is not None and (still.token, still.beat) == (held.token, held.beat):
            return True
        if held.holder.host != holder.host:
            return False
        return held.holder.boot_id != holder.boot_id or self._locks.is_free(held.run_id, held.token)


def _newest(connection: sqlite3.Connection, run_id: str) -> tuple[int, Held | None] | None:
    """Return a run's newest token and who holds it."""
    row = connection.execute(SQL["run"], (run_id,)).fetchone()
    return None if row is None else (row[5], rows.run_row(row).held)


def _holder_values(holder: Holder) -> tuple[str | int, ...]:
    return holder.host, holder.boot_id, holder.pid, holder.since


def _new_values(run: NewRun) -> tuple[str | int | None, ...]:
    about = (run.run_id, run.task, run.family, run.seal_name, run.at)
    return (*about, *_holder_values(run.holder), run.at, str(RunStatus.RUNNING), run.at, run.shadow)
