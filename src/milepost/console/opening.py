"""The store of a console as it is on disk now: a file that was put in its place is opened, one that is gone is told.

A console runs for weeks; what it was started on may be moved, restored from a copy or deleted meanwhile.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from milepost.errors import StoreMissing, StoreUnavailable
from milepost.stores.contract import Store


class OpenStore:
    """Hands out the store, opened again when another file has its name. Thread-safe."""

    def __init__(self, open_it: Callable[[], Store]) -> None:
        self._open_it = open_it
        self._lock = threading.Lock()
        self._store = open_it()
        self._file = self._there()

    @property
    def location(self) -> str:
        return self._store.location

    def current(self) -> Store:
        """Return the store. Raises: StoreMissing, and what opening another one raises."""
        with self._lock:
            there = self._there()
            if there != self._file:
                self._store = self._open_it()  # who still reads the old one keeps it
                self._file = there
            return self._store

    def look(self) -> object:
        """Return a value that differs once anything in the store is another."""
        store = self.current()
        version = getattr(store, "data_version", None)
        return (self._file, version()) if version is not None else [row.head.seq for row in store.runs()]

    def _there(self) -> tuple[int, int] | None:
        """Return which file the store is; None for one that is no file."""
        if self._store.folder is None:
            return None
        try:
            found = os.stat(self._store.location)
        except FileNotFoundError:
            raise StoreMissing(location=self._store.location) from None
        except OSError as error:
            raise StoreUnavailable(location=self._store.location, operation="look", reason=str(error)) from error
        return found.st_dev, found.st_ino
