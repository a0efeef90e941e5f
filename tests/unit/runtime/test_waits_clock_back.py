"""A wall clock that is set back while a run waits takes nothing back: the time has passed all the same."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from clock import MovableClock

from milepost import Retry, sleep, step, task
from milepost.stores.memory import MemoryStore

DAY = timedelta(days=1)


class SetBackWhileWaiting(MovableClock):
    """Goes back a day in every wait, after the time that was waited for has passed."""

    def about_to_wait(self, until: datetime) -> None:
        super().about_to_wait(until)
        self.move(-DAY)


def test_a_wait_is_not_a_day_longer_because_the_clock_went_back_a_day() -> None:
    """Else a run stands still for as long as the clock was wrong."""
    clock, tries = SetBackWhileWaiting(), 0

    @step(retry=Retry(on=ValueError, first_wait=timedelta(minutes=1)))
    def flaky() -> int:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise ValueError
        return tries

    @task
    def waits() -> int:
        sleep(timedelta(minutes=5))
        return flaky()

    assert waits.options(store=MemoryStore(), clock=clock).run("r") == 2
    assert clock.ticks() == timedelta(minutes=6).total_seconds()


def test_neither_is_an_asynchronous_one() -> None:
    """The drivers differ in how they wait, not in for how long."""
    clock = SetBackWhileWaiting()

    @task
    async def naps() -> str:
        await sleep.aio(timedelta(minutes=5))
        return "rested"

    assert asyncio.run(naps.options(store=MemoryStore(), clock=clock).run("r")) == "rested"
    assert clock.ticks() == timedelta(minutes=5).total_seconds()
