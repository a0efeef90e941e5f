"""An outside system that lives in the test's process: it keeps what it accepted, whatever happens to a run.

Its character says what it offers (keys, a lookup, how late the lookup sees things), its script what goes wrong.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from clock import MovableClock

from milepost import CannotTell, Found, NotFound


class AnswerLost(ConnectionError):
    """The call was accepted and its answer never arrived."""


class Unreachable(ConnectionError):
    """The call never arrived, but the caller cannot know that."""


class RateLimited(Exception):
    """The provider said: later. `retry_after` is in seconds."""

    def __init__(self, retry_after: float | None = None) -> None:
        super().__init__("429")
        self.retry_after = retry_after


class Provider:
    """Keeps a ledger of what was applied: (key, body, ticks), in order."""

    def __init__(
        self,
        clock: MovableClock,
        *,
        honours_keys: bool = False,
        keeps_keys_for: timedelta | None = None,
        shows_after: timedelta = timedelta(0),
    ) -> None:
        self.clock = clock
        self.honours_keys, self.keeps_keys_for, self.shows_after = honours_keys, keeps_keys_for, shows_after
        self.ledger: list[tuple[str, Any, float]] = []
        self.calls: list[str] = []  # key of every call that was made, accepted or not
        self.lookups: list[tuple[str, datetime]] = []
        self._script: deque[Callable[[str, Any], None]] = deque()
        self._answers: deque[object] = deque()

    # ── what will go wrong ──

    def will_lose_its_answer(self) -> None:
        self._script.append(self._lose)

    def will_raise(self, error: Exception) -> None:
        """Raise this instead of accepting; nothing happens."""

        def refuse(key: str, body: Any) -> None:
            raise error

        self._script.append(refuse)

    def will_answer_lookups(self, *answers: object) -> None:
        """Give these answers to the next lookups; an exception is raised."""
        self._answers.extend(answers)

    # ── what effects and lookups call ──

    def apply(self, key: object, body: Any) -> str:
        """Accept a call and return the provider's own reference."""
        self.calls.append(str(key))
        if self._script:
            self._script.popleft()(str(key), body)
        return self._accept(str(key), body)

    def find(self, key: object) -> Found[Any] | NotFound | CannotTell:
        self.lookups.append((str(key), self.clock.now()))
        if self._answers:
            answer: Any = self._answers.popleft()
            if isinstance(answer, Exception):
                raise answer
            return answer  # type: ignore[no-any-return]
        place = self._place(str(key))
        if place is None or self._age(place) < self.shows_after:
            return NotFound()
        return Found(f"receipt-{place + 1}", ref=f"receipt-{place + 1}")

    # ── inside ──

    def _accept(self, key: str, body: Any) -> str:
        known = self._place(key) if self.honours_keys else None
        if known is not None and self._still_kept(known):
            return f"receipt-{known + 1}"
        self.ledger.append((key, body, self.clock.ticks()))
        return f"receipt-{len(self.ledger)}"

    def _lose(self, key: str, body: Any) -> None:
        self._accept(key, body)
        raise AnswerLost("the connection was closed before the answer")

    def _place(self, key: str) -> int | None:
        return next((place for place, entry in enumerate(self.ledger) if entry[0] == key), None)

    def _still_kept(self, place: int) -> bool:
        return self.keeps_keys_for is None or self._age(place) < self.keeps_keys_for

    def _age(self, place: int) -> timedelta:
        """Return how long ago an entry came in, on the provider's own clock, which nobody sets back."""
        return timedelta(seconds=self.clock.ticks() - self.ledger[place][2])
