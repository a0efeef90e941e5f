"""What a page is asked for: the values of its link, bounded and checked. Called by every page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from milepost.errors import BadName

VALUE_LENGTH_MAX = 2000
"""Characters of one value; a step's path is the longest there is."""
NUMBER_MAX = 2**53


def bad_value(name: str, value: str, reason: str) -> BadName:
    """Return the error of a link's value that means nothing: what is said of names of ours helps nobody here."""
    hint = "Mend the address of the page, or go on from the inbox or the list of runs."
    return BadName(what=name, name=value, reason=reason, hint=hint)


@dataclass(frozen=True, slots=True)
class Asked:
    """The values of a link by name. Only the first of each name counts."""

    values: Mapping[str, str]

    def text(self, name: str) -> str:
        """Return a value, "" without one. Raises: BadName when it is too long."""
        value = self.values.get(name, "")
        if len(value) > VALUE_LENGTH_MAX:
            raise bad_value(name, value[:40] + "…", f"it has more than {VALUE_LENGTH_MAX} characters")
        return value

    def needed(self, name: str) -> str:
        """Return a value. Raises: BadName without one."""
        value = self.text(name)
        if not value:
            raise bad_value("the link's", name, "it is missing; the link is not whole")
        return value

    def number(self, name: str, default: int) -> int:
        """Return a whole number from 0 on. Raises: BadName when it is none."""
        value = self.text(name)
        if not value:
            return default
        if not (value.isascii() and value.isdigit()) or int(value) > NUMBER_MAX:
            raise bad_value(name, value[:40], "expected a whole number")
        return int(value)
