"""Who answers: a name, the groups they are in, and the door they came through. Data only, like the records.

The doors fill it from what the system says (an account, an authenticated request), never from what is typed.
Called by the doors, which make it, and by `runtime.answering`, which judges it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from milepost.records.frozen import frozen


@frozen
class Identity:
    """A person at a door. `name` is `user@host`, or what the door authenticated."""

    name: str
    groups: tuple[str, ...] = ()
    door: Literal["cli", "console", "library"] = "cli"

    @property
    def user(self) -> str:
        """Return the name without the host."""
        return self.name.partition("@")[0]

    def role_among(self, approvers: Iterable[str]) -> str | None:
        """Return the entry of `approvers=` that means this person: their name, its user part or a group; else None."""
        own = {self.name, self.user, *self.groups}
        return next((entry for entry in approvers if entry in own), None)


def is_same_person(one: str, other: str) -> bool:
    """Say whether two names are one person's, as far as that can be told: `ana` on two machines, or by two doors."""
    return Identity(one).user.casefold() == Identity(other).user.casefold()
