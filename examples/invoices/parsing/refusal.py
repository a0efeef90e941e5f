"""The one way in which reading an invoice ends early: a refusal with a code, what was expected and what was found.

Raised everywhere in this package and caught once, in `reading`, where it becomes an `Unreadable`. It never leaves the
package, and the words of a hostile file enter its sentence only through `quoted`.
"""

from ..model import ReasonCode, Unreadable

QUOTED_CHARS_MAX = 60


class Refusal(Exception):
    """This file gives no invoice."""

    def __init__(self, code: ReasonCode, *, expected: str, found: str) -> None:
        self.code = code
        self.expected = expected
        self.found = found
        super().__init__(f"Expected {expected}; found {found}.")

    def outcome(self, source: str) -> Unreadable:
        """Say the refusal as the value that the task stores."""
        return Unreadable(source=source, reason_code=self.code, reason=str(self))


def quoted(words: str) -> str:
    """Show at most `QUOTED_CHARS_MAX` characters of foreign text: printable ASCII, the rest escaped."""
    shown = words[:QUOTED_CHARS_MAX]
    return ascii(shown) + ("…" if len(words) > len(shown) else "")
