"""Leases: taking a run, and the one thread that keeps all leases of this process alive.

The same thread hears of signals and of cancel requests, so that no signal handler ever takes a lock.
"""

from __future__ import annotations

import os
import platform
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from milepost.errors import CorruptRecord, LeaseLost, RunBusy, RunUnknown, UnavailableError
from milepost.records.times import age, format_time
from milepost.runtime import children
from milepost.runtime.clock import Clock, boot_id
from milepost.runtime.hearing import Hearing
from milepost.stores.contract import Held, Holder, Lease, Store

if TYPE_CHECKING:
    from milepost.runtime.active import ActiveRun

TICK_S = 0.5
"""How often the keeper looks for cancel requests."""


def me(clock: Clock) -> Holder:
    """Return this process as a holder."""
    return Holder(platform.node(), _boot_id(), os.getpid(), format_time(clock.now()))


def is_on_this_machine(holder: Holder, *, renamed: bool = False) -> bool:
    """Say whether a holder runs, or ran, under the kernel that runs here: its process number means something.

    `renamed`: this process is told another host name than the machine's, which then says nothing.
    """
    return holder.boot_id == _boot_id() and (renamed or holder.host == platform.node())


def _boot_id() -> str:
    return boot_id() or "unknown"


def take(store: Store, run_id: str, clock: Clock, lease_s: float) -> Lease:
    """Take a run: at once when its holder is dead, after watching it stand still for a lease's length when silent.

    Raises: RunBusy naming who holds it and since when; RunUnknown.
    Crash: a lease nobody renews, which the next starter succeeds.
    """
    found: Lease | Held | None = None
    try:
        found = store.acquire(run_id, me(clock))
        if isinstance(found, Held) and _silent(found, clock, lease_s):
            threading.Event().wait(lease_s)
            found = store.acquire(run_id, me(clock), still=found)
        if found is None:
            raise RunUnknown(run_id=run_id, location=store.location)
        if isinstance(found, Held):
            holder = found.holder
            raise RunBusy(run_id=run_id, holder=f"process {holder.pid} on {holder.host}", since=holder.since)
        return found
    except BaseException:
        if isinstance(found, Lease):  # a signal handler raised
            store.release(found)
        raise


def _silent(held: Held, clock: Clock, lease_s: float) -> bool:
    passed = age(held.beat_at, clock.now())
    return passed is not None and passed.total_seconds() > lease_s


class LeaseKeeper:
    """Renews every lease of this process each third of its length; a lease that is lost stops its run."""

    def __init__(self) -> None:
        self.ends_with_its_run = False
        self._begin()

    def _begin(self) -> None:
        self._runs: dict[int, tuple[ActiveRun, float]] = {}
        self._lock = threading.Lock()
        self._signals: queue.SimpleQueue[tuple[Hearing, int]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._hearing = Hearing(self._signals.put)

    def add(self, run: ActiveRun) -> None:
        """Keep the lease of a run that begins here, and hear signals for it in the main thread."""
        with self._lock:
            self._runs[id(run)] = (run, run.clock.ticks())
            children.mark()
            if self._thread is None:
                thread = threading.Thread(target=self._keep, name="milepost-leases", daemon=True)
                thread.start()
                self._thread = thread  # a start that was interrupted counts as none
            self._announce()
        if run.options.handle_signals and _can_set_handlers():
            self._let_signals_go()
            self._hearing.begin(run)

    def remove(self, run: ActiveRun, *, was_stopped: bool) -> int:
        """Let a run go that is over here; with the last one of the main thread signals mean what they meant before.

        Return the number of a signal that came too late for those runs, which the program is to hear of; else 0.
        """
        self._hearing.end(run, was_stopped=was_stopped)  # first: what is heard from here on is not for this run
        late = self._let_signals_go() if _can_set_handlers() else 0
        with self._lock:
            self._runs.pop(id(run), None)
            self._announce()
        return late

    def _let_signals_go(self) -> int:
        over = self._hearing
        if not over.is_over:
            return 0
        over.give_back()
        self._hearing = Hearing(self._signals.put)  # a handler of theirs may hold a lot: asyncio's holds a task
        return 0 if self.ends_with_its_run else over.late

    @property
    def active(self) -> list[ActiveRun]:
        """Return the runs under way here, in the order they began."""
        with self._lock:
            return [run for run, _ in self._runs.values()]

    def _announce(self) -> None:
        newest = next(reversed(self._runs.values()), None)
        children.announce(None if newest is None else newest[0].run_id)

    def forget(self) -> None:
        """In a forked child: nothing here speaks for the parent's runs, and signals mean what they meant before.

        It stays the same object, which others have imported; the keeper thread is not here any more.
        """
        for run, _ in self._runs.values():
            run.broken = LeaseLost()  # no lock is taken: a thread that is not here any more may hold it
        self._hearing.end_all()
        self._begin()

    def _keep(self) -> None:
        while True:
            try:
                hearing, number = self._signals.get(timeout=TICK_S)
            except queue.Empty:
                hearing, number = self._hearing, 0
            runs = self.active
            if hearing is not self._hearing:  # its runs are over: it is the program's, not for later ones
                number = 0
            if not runs and number == 0:
                with self._lock:
                    if not self._runs:
                        self._thread = None
                        return
            for run in runs:
                if number:
                    run.stop(number)
                self._renew(run)

    def _renew(self, run: ActiveRun) -> None:
        with self._lock:
            renewed = self._runs.get(id(run), (run, float("inf")))[1]
        try:
            if run.clock.ticks() - renewed >= run.lease_s / 3:
                if not run.journal.store.renew(run.lease, format_time(run.clock.now())):
                    run.lose(LeaseLost())
                    return
                with self._lock:
                    if id(run) in self._runs:
                        self._runs[id(run)] = (run, run.clock.ticks())
            row = run.journal.store.run(run.run_id)
            if row is not None and row.cancel is not None:
                run.journal.sealer.check_row(row.cancel)
                run.cancel()
        except CorruptRecord as error:
            run.lose(error)
        except UnavailableError:
            return  # tried again at the next tick; writes are fenced whatever happens here


def _can_set_handlers() -> bool:
    return threading.current_thread() is threading.main_thread()


KEEPER = LeaseKeeper()


os.register_at_fork(after_in_child=KEEPER.forget)


@contextmanager
def ends_with_its_run() -> Iterator[None]:
    """Say of a run in here that its program ends with it: a signal that is late for one has nothing left to stop."""
    KEEPER.ends_with_its_run = True
    try:
        yield
    finally:
        KEEPER.ends_with_its_run = False


def active_runs() -> list[ActiveRun]:
    """Return the runs that are under way in this process."""
    return KEEPER.active
