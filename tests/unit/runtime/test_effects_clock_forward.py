"""A wall clock that jumps forward is not time passing: a lookup is believed only when `settle` really has passed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from clock import SharedClock

from milepost import Found, Key, NotFound, Retry, effect, task
from milepost.stores.memory import MemoryStore

SETTLE = timedelta(seconds=30)


def test_settle_is_not_cut_short_by_a_clock_that_jumps_forward(tmp_path: Path) -> None:
    """Else a provider that shows late what it applied would be believed too early, and sent to twice."""
    clock = SharedClock(tmp_path / "clock")
    applied: list[str] = []
    looked_at: list[float] = []

    def find(key: Key) -> Found[str] | NotFound:
        looked_at.append(clock.ticks())
        return Found(applied[0]) if clock.ticks() >= SETTLE.total_seconds() else NotFound()

    @effect(lookup=find, settle=SETTLE, retry=Retry(on=TimeoutError, attempts=3))
    def post(key: Key) -> str:
        applied.append(str(key))
        clock.step(timedelta(hours=1))
        raise TimeoutError("no answer")

    @task
    def posting() -> str:
        return post()

    assert posting.options(store=MemoryStore(), clock=clock).run("r") == applied[0]
    assert len(applied) == 1
    assert looked_at[0] >= SETTLE.total_seconds()
