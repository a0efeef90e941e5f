"""Who may write to a run: leases with growing tokens in the `runs` table, proof of death from lock files.

Every grant and every check happens inside one write transaction, so two starters exclude each other
whether they are threads, stores or processes; none is flushed by itself (`Writer.unflushed` says why).
Reads no clock. Called by SqliteStore.
"""

from __future__ import annotations

import sqlite3

from milepost.records.model import RunStatus
from milepost.stores.contract import Held, Holder, Lease, NewRun
from milepost.stores.sqlite import rows
from milepost.stores.sqlite.connection import Writer
from milepost.stores.sqlite.locks import LockFiles
from milepost.stores.sqlite.queries import SQL


class Leases:
    """Grants, renews and takes back leases."""

    def __init__(self, writer: Writer, locks: LockFiles) -> None:
        self._writer = writer
        self._locks = locks

    def create_run(self, run: NewRun) -> Lease | None:
        """Create a run held by its creator; None when the id is taken, be it by a run that was pruned.

        Crash: no run, or one without records whose lock is free.
        """
        lease: Lease | None = None
        try:
            with self._writer.unflushed("create run") as connection:
                if connection.execute(SQL["pruned"], (run.run_id,)).fetchone():
                    return None
                if connection.execute(SQL["create_run"], _new_values(run)).rowcount != 1:
                    return None
                lease = self._take(run.run_id, 1, run.holder)
        except BaseException:
            self._free(lease)
            raise
        return lease

    def acquire(self, run_id: str, holder: Holder, still: Held | None) -> Lease | Held | None:
        """Grant the next token, or say who holds the run; None when there is no such run.

        Crash: the lease of before, or a new one whose lock is free.
        """
        lease: Lease | None = None
        try:
            with self._writer.unflushed("acquire") as connection:
                found = _newest(connection, run_id)
                if found is None:
                    return None
                token, held = found
                if held is not None and not self._may_succeed(held, holder, still):
                    return held
                lease = self._take(run_id, token + 1, holder)
                connection.execute(SQL["take_lease"], (*_holder_values(holder), holder.since, run_id, token))
        except BaseException:
            self._free(lease)
            raise
        self._locks.drop(run_id, token)
        return lease

    def renew(self, lease: Lease, at: str) -> bool:
        """Count one sign of life; False when a later token exists. Crash: counted or not."""
        with self._writer.unflushed("renew lease") as connection:
            done = connection.execute(SQL["renew_lease"], (at, lease.run_id, lease.token))
            return done.rowcount == 1

    def release(self, lease: Lease) -> None:
        """Give a run back. Crash: given back, or still held by a process whose lock is free, which says the same.

        Raises: StoreUnavailable when the row could not be written; the lock is free all the same.
        """
        try:
            with self._writer.unflushed("release lease") as connection:
                connection.execute(SQL["release_lease"], (lease.run_id, lease.token))
        except BaseException:
            self._free(lease)  # the row still says held: only a free lock file tells the next starter otherwise
            raise
        self.forget(lease)

    def forget(self, lease: Lease) -> None:
        """Drop the lock of a lease whose row says that it was given back. Crash: a free file is left."""
        self._locks.drop(lease.run_id, lease.token)

    def _take(self, run_id: str, token: int, holder: Holder) -> Lease:
        self._locks.take(run_id, token)
        return Lease(run_id, token, holder)

    def _free(self, lease: Lease | None) -> None:
        """Let go of a lock whose lease was not committed, or perhaps was; never of another holder's."""
        if lease is not None:
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
