"""A wall clock that jumps is not time passing: lookups and keys go by what really has passed, also across a death."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from clock import SharedClock
from desk import Desk

from milepost import Found, Key, NotFound, Retry, StepFailed, Task, effect, task
from milepost.errors import OutcomeUnknown
from milepost.protocol.ops import Moment
from milepost.runtime.active import RunOptions
from milepost.runtime.check import check_run
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


class SlowProvider:
    """Applies at once and shows it when `settle` has passed on a clock that does not jump; knows keys for a day."""

    def __init__(self, clock: SharedClock) -> None:
        self.clock = clock
        self.applied: list[float] = []
        self.looked_at: list[float] = []

    def apply(self) -> str:
        self.applied.append(self.clock.ticks())
        raise TimeoutError("no answer")

    def find(self) -> Found[str] | NotFound:
        self.looked_at.append(self.clock.ticks())
        is_shown = self.clock.ticks() >= self.applied[0] + SETTLE.total_seconds()
        return Found("receipt") if is_shown else NotFound()


class Rebooted(SharedClock):
    """The same wall time after the machine was started anew: ticks count from another zero."""

    def boot(self) -> str:
        return "another"

    def ticks(self) -> float:
        return super().ticks() - 5.0


def paying(provider: SlowProvider) -> Task[[], str]:
    def find(key: Key) -> Found[str] | NotFound:
        return provider.find()

    @effect(lookup=find, settle=SETTLE)
    def pay(key: Key) -> str:
        return provider.apply()

    @task
    def plan() -> str:
        return pay()

    return plan


def test_settle_is_not_cut_short_by_a_clock_that_jumps_between_two_processes(desk: Desk, tmp_path: Path) -> None:
    """The outcome was recorded an hour ago by the wall, two seconds ago by the machine: the lookup waits."""
    clock = desk.clock = SharedClock(tmp_path / "clock")  # type: ignore[assignment]
    provider = SlowProvider(clock)
    plan = paying(provider)
    with pytest.raises(StepFailed):
        desk.run(plan)
    clock.move(timedelta(seconds=2))
    clock.step(timedelta(hours=1))
    assert desk.resume(plan) == "receipt"
    assert (len(provider.applied), provider.looked_at) == (1, [pytest.approx(SETTLE.total_seconds())])


def test_settle_is_not_cut_short_by_a_jump_after_a_death_while_it_settled(desk: Desk, tmp_path: Path) -> None:
    """Killed in the send, resumed, killed again while it settled: what counts is since that first resume."""
    clock = desk.clock = SharedClock(tmp_path / "clock")  # type: ignore[assignment]
    provider = SlowProvider(clock)
    plan = paying(provider)
    desk.dies(plan, at="send")
    desk.dies(plan, at="wait", phase="before", settled=True)
    clock.step(timedelta(hours=1))
    assert desk.resume(plan) == "receipt"
    assert (len(provider.applied), provider.looked_at) == (1, [pytest.approx(SETTLE.total_seconds())])


def test_after_a_reboot_the_wall_clock_counts(desk: Desk, tmp_path: Path) -> None:
    """Ticks of another boot say nothing; a journal that has none is read on."""
    clock = desk.clock = SharedClock(tmp_path / "clock")  # type: ignore[assignment]
    provider = SlowProvider(clock)
    plan = paying(provider)
    with pytest.raises(StepFailed):
        desk.run(plan)
    clock.move(timedelta(hours=1))
    desk.clock = Rebooted(tmp_path / "clock")  # type: ignore[assignment]
    before = clock.ticks()
    assert desk.resume(plan) == "receipt"
    assert provider.looked_at == [before]


def test_a_key_does_not_grow_younger_by_a_clock_that_was_set_back(desk: Desk, tmp_path: Path) -> None:
    """A provider that forgot the key would take a second send for a new one."""
    clock = desk.clock = SharedClock(tmp_path / "clock")  # type: ignore[assignment]
    provider = SlowProvider(clock)

    @effect(key_lifetime=timedelta(hours=24))
    def pay_keyed(key: Key) -> str:
        return provider.apply()

    @task
    def plan() -> str:
        return pay_keyed()

    with pytest.raises(StepFailed):
        desk.run(plan)
    clock.move(timedelta(hours=25))
    clock.step(timedelta(hours=-24))
    foreseen = check_run(plan.spec, "r", desk.store, RunOptions(store=desk.store, clock=clock))[2]
    assert (foreseen.number, foreseen.state) == (3, "ask")
    with pytest.raises(OutcomeUnknown, match="lifetime"):
        desk.resume(plan)
    assert len(provider.applied) == 1


def test_uptimes_of_another_boot_or_of_none_say_nothing() -> None:
    now = Moment(datetime(2026, 11, 2, tzinfo=UTC), "", 100.0, "boot")
    assert now.since(now.uptime) == 0
    assert now.since("boot 40.5") == 59.5
    assert [now.since(other) for other in (None, "", "other 40", "boot 200")] == [None] * 4
    assert Moment(now.at, "", 1.0).uptime is None
