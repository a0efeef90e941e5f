"""What one console is made of: its store, its people, its children. Made once, by `server`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from milepost.console.changes import Changes
from milepost.console.children import Children
from milepost.console.hosts import Hosts
from milepost.console.opening import OpenStore
from milepost.console.people import People
from milepost.runtime.opening import Opened
from milepost.stores.contract import Store


@dataclass(frozen=True, slots=True)
class Console:
    """One running console."""

    door: OpenStore
    people: People
    hosts: Hosts
    children: Children
    changes: Changes
    port: int
    url: str  # how people reach it from elsewhere, for cookies and links
    on_entered: Callable[[], None]
    owners_only: bool  # connections of other accounts of this machine are refused

    @property
    def store(self) -> Store:
        """Return the store as it is now. Raises: StoreMissing."""
        return self.door.current()

    def read(self, run_id: str) -> Opened:
        """Read all that a run's journal says; not again while nothing in the store has changed. Raises: RunUnknown."""
        return self.door.read(run_id)
