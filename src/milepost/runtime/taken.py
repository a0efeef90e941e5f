"""What a start has taken so far, and gives back however it ends. Called by `start`."""

from __future__ import annotations

from contextlib import suppress

from milepost.errors import LeaseLost, MilepostError, StoreUnavailable
from milepost.runtime.active import ActiveRun
from milepost.runtime.copies import CopyLock
from milepost.runtime.hearing import pass_on_late
from milepost.runtime.leases import KEEPER
from milepost.stores.contract import Lease, Store


class Taken:
    """A lease, what keeps copies of the store away, the run that goes on; each is noted before anything can raise."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.lease: Lease | None = None
        self.copies: CopyLock | None = None
        self.run: ActiveRun | None = None
        self.was_stopped = False  # by a signal, and the caller is told so
        self._late = 0  # a signal that came too late for the run

    def give_back(self) -> None:
        """Write what is left, give the lease back. A forked child has neither. Begun again when it was interrupted.

        Then the program hears of a signal that was taken for the run and came too late to stop it: its handler may
        raise, as for KeyboardInterrupt, or end the process.
        Crash: the lease is not given back; the next starter finds its holder dead.
        """
        if self.run is not None and not self.run.is_of_this_process:
            return
        if self.run is not None:
            self._end(self.run)
        if self.lease is not None:
            with suppress(StoreUnavailable):  # it follows from what was told, and must not stand in its place
                self.store.release(self.lease)
        if self.copies is not None:
            self.copies.drop()
        self.run = self.lease = None
        if late := self._late:
            self._late = 0
            pass_on_late(late)

    def _end(self, run: ActiveRun) -> None:
        self._late = KEEPER.remove(run, was_stopped=self.was_stopped) or self._late
        try:
            if run.broken is None:
                run.journal.flush()
        except (MilepostError, LeaseLost):
            pass  # how the run ended was told already; what is not durable is not there
        finally:
            run.journal.close()
