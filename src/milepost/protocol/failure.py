"""What follows a failed attempt: again, ask or raise. Pure."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Literal

from milepost.errors import Declined, StepFailed, UndeclaredWrite
from milepost.protocol.policy import Retry
from milepost.records.frozen import frozen
from milepost.records.model import ERROR_SIZE_MAX, ErrorRecord
from milepost.records.secret import redact
from milepost.records.shown import cut_to_size
from milepost.records.times import age, format_time


class VerificationFailed(Exception):
    """A verifier refused an output. Raised for a step whose check failed; a Retry may name it in `on`."""

    def __init__(self, check: str, reason: str) -> None:
        self.check, self.reason = check, reason
        super().__init__(f"{check}: {reason}")


@frozen
class Again:
    """Try again at this UTC time (ISO)."""

    until: str


def after_failure(
    retry: Retry | None, error: BaseException, *, starts: int, since: str, now: datetime
) -> Again | Literal["ask", "raise", "stop"]:
    """Decide what follows the last of so many starts, the first of which was at `since`.

    "stop": no policy covers it, the run ends failed and a resume starts the step again.
    """
    is_ours = isinstance(error, (Declined, UndeclaredWrite))  # it would be kept from it again
    if retry is None or is_ours or not isinstance(error, Exception) or not retry.covers(error):
        return "stop"
    until = now + retry.wait(starts, error)
    if starts >= retry.attempts or _past_deadline(retry, since, until):
        return retry.then
    return Again(format_time(until))


def leaves_as_it_is(error: BaseException) -> bool:
    """Say whether an error of users' code is no failure of the step it left: who cancels or interrupts waits for it.

    Everything else is one, `sys.exit()` too: the library a step calls does not end the program.
    """
    return isinstance(error, (KeyboardInterrupt, *cancellations()))


def cancellations() -> tuple[type[BaseException], ...]:
    """Return what asyncio raises to cancel; nothing where nobody has imported it, as a synchronous task need not."""
    asyncio = sys.modules.get("asyncio")
    return (asyncio.CancelledError,) if asyncio is not None else ()


def _past_deadline(retry: Retry, since: str, until: datetime) -> bool:
    if retry.deadline is None:
        return False
    passed = age(since, until)
    return passed is not None and passed > retry.deadline


def error_record(error: BaseException) -> ErrorRecord:
    """Return an exception as data: any exception, also one whose `str()` raises, is huge or holds a secret."""
    kind = type(error)
    name = (
        kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    )
    return ErrorRecord(type=cut_to_size(name, 200), text=kept_text(_text(error)))


def cause_record(error: StepFailed) -> ErrorRecord:
    """Return what made a step fail, as its own record has it: where and at which attempt stands there."""
    kind, _, text = str(error.error).partition(": ")
    return ErrorRecord(type=cut_to_size(kind, 200), text=kept_text(text))


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as own:  # noqa: BLE001 – a user's __str__ may raise anything; the record must still be written
        return f"(its text cannot be read: {type(own).__name__})"


def kept_text(text: str, size_max: int = ERROR_SIZE_MAX) -> str:
    """Return what users' code says as it may be kept: without secret values, cut to so many bytes."""
    return cut_to_size(redact(text), size_max)
