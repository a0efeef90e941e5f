"""The wall clock jumps, back and forward: between a death and the resume, and at every look a run takes at it.

Points: `between FLAVOUR CHARACTER N JUMP` (killed at the n-th crash point, then the clock is moved) and `inside N JUMP`
(the n-th look sees another time). No time passes in a jump. A person may be asked; nothing is sent twice, left out or
stuck. Left out is a jump forward before a lookup that must settle: a wall clock alone cannot tell it from time passing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path

from clock import MovableClock
from judge import finished_like
from small_plan import holds
from syscalls import Toys, toys
from tally import Harm, NotReached, Points, broken
from timed_plan import TimedOffice
from toy_provider import Character
from toy_world import KILLED

from milepost.errors import MilepostError, QuestionError
from milepost.stores.sqlite.store import SqliteStore

KIND = "clock jumps"
JUMPS = {
    "back-a-day": timedelta(days=-1),
    "back-an-hour": timedelta(hours=-1),
    "back-a-second": timedelta(seconds=-1),
    "on-an-hour": timedelta(hours=1),
    "on-two-days": timedelta(days=2),
}
STARTS_MAX = 12


class JumpingClock(MovableClock):
    """Shows another wall time from its n-th look on; its ticks go on as if nothing had happened."""

    def __init__(self, at: int, jump: timedelta) -> None:
        super().__init__()
        self._at, self._jump, self.looks = at, jump, 0

    def now(self) -> datetime:
        with self._lock:
            self.looks += 1
            if self.looks == self._at:
                self._now += self._jump
            return self._now


@contextmanager
def opened(folder: Path) -> Iterator[Points]:
    numbers = count()
    with toys(folder) as lab:
        looks = inside(folder / "reference", JumpingClock(0, timedelta(0)))
        points = [*between_points(lab), *(f"inside {n} {jump}" for n in range(1, looks + 1) for jump in JUMPS)]

        def attempt(point: str) -> None:
            what, *rest = point.split()
            if what == "between":
                between(lab, *rest)
            else:
                clock = JumpingClock(int(rest[0]), JUMPS[rest[1]])
                inside(folder / f"inside-{next(numbers)}", clock)

        yield points, attempt


def between_points(lab: Toys) -> Iterator[str]:
    for flavour in ("sync", "async"):
        for character in Character:
            world = lab.world(flavour, character)
            assert world.start() == 0, world.output()
            for number in range(1, len(world.points()) + 1):
                for jump in jumps_before(character):
                    yield f"between {flavour} {character} {number} {jump}"


def jumps_before(character: str) -> list[str]:
    """Name the jumps after which a run can still know what it must."""
    return [name for name, by in JUMPS.items() if character != Character.LOOKS_UP_LATE or by < timedelta(0)]


def between(lab: Toys, flavour: str, character: str, number: str, jump: str) -> None:
    """Kill at a point, move the clock, resume, compare. Raises: Violation."""
    world = lab.world(flavour, character)
    status = world.start(MILEPOST_CRASH_AT=number)
    if status == 0:
        raise NotReached
    assert status == KILLED, (status, world.output())
    world.clock().step(JUMPS[jump])
    finished_like(world, lab.reference(flavour, character))


def inside(folder: Path, clock: JumpingClock) -> int:
    """Run under a clock that jumps once, answer what is asked; return how often it was looked at. Raises: Violation."""
    folder.mkdir()
    office = TimedOffice(clock)
    with closing(SqliteStore(folder / "store.sqlite", create=True)) as store:
        for _ in range(STARTS_MAX):
            try:
                found = office.plan.options(store=store, clock=clock).run("r")
                break
            except QuestionError:
                office.answer(store)
            except MilepostError as error:
                last = error
        else:
            broken(Harm.STUCK, f"not done after {STARTS_MAX} starts: {last}")
        holds(store, ())
    if clock._at > clock.looks:
        raise NotReached
    if office.twice():
        broken(Harm.REPEATED, office.twice())
    if found != TimedOffice.RESULT:
        broken(Harm.FALSELY_VERIFIED, found)
    return clock.looks
