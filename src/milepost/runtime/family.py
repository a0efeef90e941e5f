"""A family of runs is a line: a run is forked once, and its newest run knows all that the family ever sent.

Which run is the newest is a claim in the store, beside those of shared keys: it outlives the runs, pruned ones too.
Whoever forks moves it, under both leases. The witness remembers it, too: a run that had ended gets no record by its
fork, so nothing else shows a store from before that. Called by `fork`.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping

from milepost.errors import AlreadyForked
from milepost.records.frozen import frozen
from milepost.records.rows import ClaimRow
from milepost.records.seal import Sealer
from milepost.records.times import format_time
from milepost.runtime.clock import Clock
from milepost.runtime.leases import take
from milepost.runtime.witness import Witness, witness_of
from milepost.stores.contract import Lease, RunRow, Store

PRUNED = "Start a new run: the newest one was pruned, and no other knows all that the family sent."


@frozen
class Family:
    """The line of runs that one run began, in one store."""

    store: Store
    name: str  # the id of its first run
    sealer: Sealer
    clock: Clock
    lease_s: float
    witness: Witness

    def has_newer(self, run_id: str, forked_from: str | None) -> bool:
        """Say whether this machine saw another run take the place of the newest one, which the store does not know of.

        The witness may still name the run before it: a process can die between the place and the witness.
        """
        seen = self.witness.read()
        return seen is not None and seen[1] not in (_seal(run_id), _seal(forked_from or run_id))

    def stay_newest(self, lease: Lease) -> None:
        """See that the run held is the newest, and own that place. A fork that died before its first record is none.

        Crash: the place is as it was, or this run's. Raises: AlreadyForked, RunBusy while such a fork is under way.
        """
        newest = self._claim(lease)
        if newest != lease.run_id and self._is_half_made(newest):
            newest = self._claim(lease, instead_of=newest)
        if newest != lease.run_id:
            raise self._forked(lease.run_id, newest)

    def follow(self, lease: Lease, run_id: str) -> None:
        """Let a new run, held and without records, take the place of the one it is a fork of.

        Crash: a fork without records is the newest, which `stay_newest` sees. Raises: AlreadyForked.
        """
        newest = self._claim(lease, instead_of=run_id)
        if newest != lease.run_id:
            raise self._forked(run_id, newest)

    def seen(self, newest: str) -> None:
        """Remember, outside the store, a newest run that has its first records. Crash: the one before is remembered."""
        self.witness.write(1, _seal(newest))
        self.witness.close()

    def _claim(self, lease: Lease, instead_of: str | None = None) -> str:
        """Return the newest run: this one where nobody is, or where it comes instead. Raises: LeaseLost."""
        row = ClaimRow(f"family:{self.name}", lease.run_id, "", "", format_time(self.clock.now()))
        owner = self.store.claim(self.sealer.sealed(row), lease.token, instead_of=instead_of)
        self.sealer.check_row(owner)
        return owner.run_id

    def _is_half_made(self, run_id: str) -> bool:
        """Say whether a fork died before its first record; whoever made it can write none any more.

        Crash: its lease is free again for whoever takes it.
        """
        if not is_empty(self.store.run(run_id)):
            return False
        lease = take(self.store, run_id, self.clock, self.lease_s)  # the next token: older ones write nothing
        try:
            return is_empty(self.store.run(run_id))
        finally:
            self.store.release(lease)

    def _forked(self, run_id: str, newest: str) -> AlreadyForked:
        go_on = (
            f"`milepost fork {shlex.quote(newest)} --from STEP` goes on from there: it knows all that the family sent."
        )
        hint = go_on if self.store.run(newest) is not None else PRUNED
        return AlreadyForked(run_id=run_id, newest=newest, hint=hint)


def is_empty(row: RunRow | None) -> bool:
    """Say whether a run is there and has no records."""
    return row is not None and row.head.seq == 0


def newest_seen(store_id: str, family: str, environ: Mapping[str, str]) -> Witness:
    """Return what this machine remembers of the newest run of a family. Its name is that of no run."""
    return witness_of(store_id, f"\nfamily {family}", environ)


def _seal(run_id: str) -> bytes:
    return hashlib.sha256(run_id.encode()).digest()
