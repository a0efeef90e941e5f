"""What one console is made of: its store, its people, its templates and its children. Made once, by `app`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from milepost.console.changes import Changes
from milepost.console.children import Children
from milepost.console.gate import Hosts
from milepost.console.opening import OpenStore
from milepost.console.people import People
from milepost.console.shown import Templates
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
    templates: Templates = field(default_factory=Templates)
    port: int = 0
    url: str = ""  # how people reach it from elsewhere, for cookies and links
    on_entered: Callable[[], None] = lambda: None
    owners_only: bool = False  # connections of other accounts of this machine are refused

    @property
    def store(self) -> Store:
        """Return the store as it is now. Raises: StoreMissing."""
        return self.door.current()

    def read(self, run_id: str) -> Opened:
        """Read all that a run's journal says; not again while nothing in the store has changed. Raises: RunUnknown."""
        return self.door.read(run_id)
