"""The store of a console as it is on disk now: a file that was put in its place is opened, one that is gone is told.

A console runs for weeks; what it was started on may be moved, restored from a copy or deleted meanwhile.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from milepost.errors import StoreMissing, StoreUnavailable
from milepost.runtime.opening import Opened
from milepost.stores.contract import Store
from milepost.views.opened import read_whole

READ_MAX = 8
"""Runs whose journals are kept read."""


class OpenStore:
    """Hands out the store, opened again when another file has its name. Thread-safe."""

    def __init__(self, open_it: Callable[[], Store]) -> None:
        self._open_it = open_it
        self._lock = threading.Lock()
        self._store: Store | None = open_it()
        self.location = self._store.location
        self._is_file = self._store.folder is not None
        self._file = self._there()
        self._read: dict[str, Opened] = {}
        self._read_at: object = None

    def current(self) -> Store:
        """Return the store. Raises: StoreMissing, and what opening another one raises."""
        with self._lock:
            there = self._there()
            if self._store is None or there != self._file:
                self._let_go()
                self._store, self._file = self._open_it(), there
            return self._store

    def _let_go(self) -> None:
        """Close what was open: a connection to a file that comes back under its name would see none of its changes."""
        if self._store is not None:
            self._store.close()
        self._store = None

    def read(self, run_id: str) -> Opened:
        """Read a run whole; what was read stands as long as nobody has written anything. Raises: RunUnknown."""
        store, seen = self.current(), self.look()
        with self._lock:
            if seen != self._read_at:
                self._read, self._read_at = {}, seen
            kept = self._read.get(run_id)
        if kept is None:
            kept = read_whole(store, run_id)
            with self._lock:
                if seen == self._read_at:
                    self._keep(run_id, kept)
        return kept

    def _keep(self, run_id: str, opened: Opened) -> None:
        while len(self._read) >= READ_MAX:
            self._read.pop(next(iter(self._read)))
        self._read[run_id] = opened

    def look(self) -> object:
        """Return a value that differs once anything in the store is another."""
        store = self.current()
        version = getattr(store, "data_version", None)
        return (self._file, version()) if version is not None else [row.head.seq for row in store.runs()]

    def _there(self) -> tuple[int, int] | None:
        """Return which file the store is; None for one that is no file."""
        if not self._is_file:
            return None
        try:
            found = os.stat(self.location)
        except FileNotFoundError:
            self._let_go()
            raise StoreMissing(location=self.location) from None
        except OSError as error:
            raise StoreUnavailable(location=self.location, operation="look", reason=str(error)) from error
        return found.st_dev, found.st_ino
