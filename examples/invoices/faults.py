"""What can go wrong with the outside world of the invoice example, grouped by what it proves.

Every client of this example (accounting queue, outgoing mail, model) translates foreign errors into these, once.
The difference that matters to a task: `NotReached`, `RateLimited` and `TurnedDown` prove that nothing happened;
`Unanswered` proves nothing at all.
"""

from __future__ import annotations

from typing import ClassVar


class OutsideError(Exception):
    """Something outside this process did not do what was asked; `code` is stable, `hint` says what to do next."""

    code: ClassVar[str] = "outside"
    hint: ClassVar[str] = "Look at the service named in the message."


class Unexpected(OutsideError):
    """Something else was found than `expected`; `so` says what follows from that."""

    expected: ClassVar[str]
    so: ClassVar[str] = ""

    def __init__(self, *, where: str, found: str) -> None:
        self.where, self.found = where, found
        super().__init__(f"{where}: expected {self.expected}, found {found}{self.so}.")


class NotReached(Unexpected):
    """No connection was made, so nothing was sent."""

    code = "not-reached"
    hint = "Start the service, or correct its address, and resume."
    expected = "a service that accepts connections"
    so = "; nothing was sent"


class Unanswered(Unexpected):
    """Something was sent and no usable answer came: it may have been carried out, or not."""

    code = "unanswered"
    hint = "Look the request up at the service before sending it again."
    expected = "an answer"
    so = "; the request may have been carried out"


class RateLimited(OutsideError):
    """The service said *later* and did nothing; `retry_after` is its wish in seconds, if it named one."""

    code = "rate-limited"
    hint = "Wait as long as the service asks, then send again."

    def __init__(self, *, where: str, retry_after: float | None) -> None:
        self.where, self.retry_after = where, retry_after
        wish = "names no time" if retry_after is None else f"asks to wait {retry_after:g} s"
        super().__init__(f"{where}: too many requests; the service did nothing and {wish}.")


class TurnedDown(OutsideError):
    """The service understood the request, refused it and did nothing."""

    code = "turned-down"
    hint = "Correct the request; sending the same one again brings the same answer."

    def __init__(self, *, where: str, status: int, said: str) -> None:
        self.where, self.status, self.said = where, status, said
        super().__init__(f"{where}: expected the request to be accepted, found status {status}: {said[:300]}")


class CannotLookUp(Unexpected):
    """The service offers no lookup, or its lookup failed: nothing is known about the request."""

    code = "cannot-look-up"
    hint = "Ask a person who can see the service's own books."
    expected = "a lookup by key"


def retry_after_of(header: str | None) -> float | None:
    """Read a `Retry-After` header in seconds; None for an absent, negative or unreadable one (RFC 9110 §10.2.3)."""
    try:
        wait = float(header) if header is not None else -1.0
    except ValueError:
        return None
    return wait if 0 <= wait < 86_400 else None
