"""A wall clock that jumps forward is not time passing: a lookup is believed only when `settle` really has passed."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from clock import SharedClock

from milepost import Found, Key, NotFound, Retry, effect, task
from milepost.stores.memory import MemoryStore

SETTLE = timedelta(seconds=30)


class SetForwardInAWait(SharedClock):
    """Jumps an hour at the end of its n-th wait."""

    def __init__(self, path: Path, nth: int) -> None:
        super().__init__(path)
        self._left = nth

    def about_to_wait(self, until: datetime) -> None:
        super().about_to_wait(until)
        self._left -= 1
        if self._left == 0:
            self.step(timedelta(hours=1))


@pytest.mark.parametrize("nth", [1, 2], ids=["before the retry", "while it settles"])
def test_settle_is_not_cut_short_by_a_clock_that_jumps_in_a_wait(tmp_path: Path, nth: int) -> None:
    """The hour that is missing on the wall has not passed at the provider."""
    settles(SetForwardInAWait(tmp_path / "clock", nth), jumps_in_send=False)


def test_settle_is_not_cut_short_by_a_clock_that_jumps_in_a_send(tmp_path: Path) -> None:
    """Else a provider that shows late what it applied would be believed too early, and sent to twice."""
    settles(SharedClock(tmp_path / "clock"), jumps_in_send=True)


def settles(clock: SharedClock, *, jumps_in_send: bool) -> None:
    """See that a call whose answer was lost is looked up after it has settled, and not sent again."""
    applied: list[str] = []
    looked_at: list[float] = []

    def find(key: Key) -> Found[str] | NotFound:
        looked_at.append(clock.ticks())
        return Found(applied[0]) if clock.ticks() >= SETTLE.total_seconds() else NotFound()

    @effect(lookup=find, settle=SETTLE, retry=Retry(on=TimeoutError, attempts=3))
    def post(key: Key) -> str:
        applied.append(str(key))
        if jumps_in_send:
            clock.step(timedelta(hours=1))
        raise TimeoutError("no answer")

    @task
    def posting() -> str:
        return post()

    assert posting.options(store=MemoryStore(), clock=clock).run("r") == applied[0]
    assert len(applied) == 1
    assert looked_at[0] >= SETTLE.total_seconds()
