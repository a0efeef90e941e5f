"""Retry: the written policy on a step or effect. It says whether to try again, never that nothing happened."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from milepost.errors import BadOption
from milepost.protocol.amounts import checked_duration, is_number, shown

STARTS_MAX = 3
"""Starts of a step allowed without a policy before a person is asked (design §5)."""
ATTEMPTS_MAX = 1000
"""Starts a policy may allow."""
RESUMES_MAX = 5
"""Resumes in a row that ran something and brought no checkpoint, before a person is asked."""
KEY_MARGIN = timedelta(minutes=5)
"""How much before the end of `key_lifetime` a provider's memory is no longer trusted."""
WAIT_MAX = timedelta(days=7)
"""Longest wait honoured from a provider's Retry-After."""
FACTOR_MAX = 1000
"""How much longer than the last a wait can be at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Which exceptions are tried again, how often, and what happens then.

    `attempts` counts starts, killed ones included. The n-th wait is `first_wait × factor^(n-1)`, at most
    `longest_wait`; an exception's `retry_after` (seconds) is honoured when longer. `deadline` counts from
    the first start. `then="ask"` asks a person, `"raise"` gives the plan `StepFailed`, the same on each resume.
    """

    on: type[Exception] | tuple[type[Exception], ...]
    attempts: int = 3
    first_wait: timedelta = timedelta(seconds=1)
    factor: float = 2.0
    longest_wait: timedelta = timedelta(minutes=5)
    deadline: timedelta | None = None
    then: Literal["ask", "raise"] = "ask"

    def __post_init__(self) -> None:
        kinds = self.on if isinstance(self.on, tuple) else (self.on,)
        if not kinds or not all(isinstance(k, type) and issubclass(k, Exception) for k in kinds):
            raise BadOption(where="Retry(on=…)", reason=f"expected exception classes, found {self.on!r}")
        if type(self.attempts) is not int or not 1 <= self.attempts <= ATTEMPTS_MAX:
            reason = f"expected 1 to {ATTEMPTS_MAX}, found {shown(self.attempts)}"
            raise BadOption(where="Retry(attempts=…)", reason=reason)
        if not is_number(self.factor, 1, FACTOR_MAX):
            reason = f"expected a number from 1 to {FACTOR_MAX}, found {shown(self.factor)}"
            raise BadOption(where="Retry(factor=…)", reason=reason)
        self._check_waits()
        if self.then not in ("ask", "raise"):
            raise BadOption(where="Retry(then=…)", reason=f'expected "ask" or "raise", found {self.then!r}')

    def _check_waits(self) -> None:
        for name in ("first_wait", "longest_wait"):
            checked_duration(f"Retry({name}=…)", getattr(self, name), least=timedelta(0))
        if self.longest_wait < self.first_wait:
            reason = f"expected at least first_wait, {self.first_wait}, found {self.longest_wait}"
            raise BadOption(where="Retry(longest_wait=…)", reason=reason)
        if self.deadline is not None:
            checked_duration("Retry(deadline=…)", self.deadline, least=timedelta(0))  # zero: never again

    def covers(self, error: BaseException) -> bool:
        """Say whether this exception, or the one it was raised from, is to be tried again."""
        return isinstance(error, self.on) or isinstance(error.__cause__, self.on)

    def wait(self, attempt: int, error: BaseException | None = None) -> timedelta:
        """Return how long to wait after the given attempt (counted from 1)."""
        grown = self.first_wait.total_seconds() * self.factor ** min(attempt - 1, 64)
        own = timedelta(seconds=min(grown, self.longest_wait.total_seconds()))
        asked = retry_after(error)
        return own if asked is None else max(own, asked)


def retry_after(error: BaseException | None) -> timedelta | None:
    """Return the wait a provider asked for: the exception's `retry_after` in seconds or as a timedelta."""
    asked = getattr(error, "retry_after", None)
    if isinstance(asked, timedelta):
        return max(timedelta(0), min(asked, WAIT_MAX))
    if isinstance(asked, (int, float)) and not isinstance(asked, bool) and asked >= 0:
        return min(timedelta(seconds=float(min(asked, WAIT_MAX.total_seconds()))), WAIT_MAX)
    return None
