"""Workers that stand still, are succeeded, and wake: they write nothing more, and nothing is sent twice.

A point is `FLAVOUR CHARACTER PLACE N WAKES`: where it falls asleep (see `sleepers`) and whether it wakes when its
successor is done or was killed half-way.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from judge import compared, finished_like, read
from sleepers import Sleepers
from tally import Harm, NotReached, Points, broken
from toy_lab import FLAVOURS, Lab
from toy_orders import RUN_ID
from toy_provider import Character
from toy_world import KILLED, STARTS_MAX, World, provider

KIND = "sleeping workers"
LEASE_S = 0.1
SILENCE = timedelta(seconds=60)
DONE, REFUSED, ASKS, UNAVAILABLE = 0, 3, 4, 6
CALLS, COMMITS = 12, 30
"""About as many calls of the provider and commits as one run makes; what a run does not reach is not counted."""
WAKES = ("done", "killed")


@contextmanager
def opened(folder: Path) -> Iterator[Points]:
    sleepers = Sleepers()
    try:
        with provider(folder / "ledger.sqlite") as port:
            lab = Lab(folder, sleepers, port)
            points = [f"{f} {c} {place}" for f in FLAVOURS for c in Character for place in places(lab, f, c)]
            yield (
                [f"{point} {wakes}" for point in points for wakes in WAKES],
                lambda point: attempt(lab, sleepers, point),
            )
    finally:
        sleepers.close()


def places(lab: Lab, flavour: str, character: str) -> Iterator[str]:
    """Yield where a worker may fall asleep."""
    passed = lab.reference(flavour, character)[0].points()
    yield from (f"point {number}" for number in range(1, len(passed) + 1))
    yield from (f"answer {number}" for number in range(1, CALLS + 1))
    yield from (f"commit {when} {number}" for when in ("before", "after") for number in range(1, COMMITS + 1))


class Asleep(World):
    """A world in which one worker sleeps while others come."""

    def order(self, **environ: object) -> dict[str, Any]:
        return {
            "folder": str(self.folder),
            "environ": self._environ({"TOY_LEASE_S": LEASE_S, **environ}),
            "flavour": self.flavour,
            "run_id": RUN_ID,
        }

    def is_held(self) -> bool:
        """Say whether the sleeper holds the run: it may not have come so far, or may have given it back."""
        if not (self.folder / "store.sqlite").exists():
            return False
        with self.store() as store:
            row = store.run(RUN_ID)
            return row is not None and row.held is not None

    def is_locked(self) -> bool:
        """Say whether the sleeper is inside a transaction: beside a crash point another of its threads may commit."""
        if not (path := self.folder / "store.sqlite").exists():
            return False
        connection = sqlite3.connect(path, timeout=0, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        else:
            connection.execute("ROLLBACK")
            return False
        finally:
            connection.close()

    def succeed(self, **environ: object) -> int:
        """Start a successor, until it is done or killed, answering what is asked; return its exit status."""
        status = ASKS
        for _ in range(STARTS_MAX):
            self.clock().move(SILENCE)
            status = self.starter.start(self.order(**environ))
            if status != ASKS:
                break
            self.answer_from_ledger()
        return status


def attempt(lab: Lab, sleepers: Sleepers, point: str) -> None:
    """Let one worker sleep and its successors go on, then wake it. Raises: Violation, NotReached."""
    flavour, character, *place, wakes = point.split()
    world = Asleep(lab.folder / point.replace(" ", "-"), flavour, character, sleepers, lab.port)
    expected = lab.reference(flavour, character)[1]
    if sleepers.fall_asleep(world.order(TOY_TOLD="told-asleep"), " ".join(place)) is not None:
        raise NotReached
    if world.is_locked():
        holds_the_store(world)
    else:
        is_succeeded(world, expected, random.Random(point), wakes)
    finished_like(world, expected)


def holds_the_store(world: Asleep) -> None:
    """Nobody else can write meanwhile: they are told so in time, and the sleeper goes on when it wakes."""
    assert isinstance(world.starter, Sleepers)
    status = world.starter.start_impatient(world.order())
    if status not in (UNAVAILABLE, REFUSED, DONE):  # done: the run had ended, or its store was not in its place yet
        broken(Harm.STUCK, f"a starter beside a sleeping commit ended with {status}: {world.output()[-1000:]}")
    check_woken(world, world.starter.wake(), None)


def is_succeeded(world: Asleep, expected: Any, chance: random.Random, wakes: str) -> None:
    """Another one goes on; the sleeper wakes and is refused, whatever it was about to write."""
    was_held = world.is_held()
    die_at = {"MILEPOST_CRASH_AT": chance.randint(1, 120)} if wakes == "killed" else {}
    status = world.succeed(**die_at)
    if status not in (DONE, KILLED):
        broken(Harm.STUCK, f"the successor ended with {status}: {world.output()[-1000:]}")
    before = world.records()
    assert isinstance(world.starter, Sleepers)
    woken = world.starter.wake()
    check_woken(world, woken, expected.report)
    if was_held and world.records() != before:
        broken(Harm.FALSELY_VERIFIED, "the sleeper wrote although another one had taken the run")
    if status == DONE:
        compared(read(world), expected)


def check_woken(world: World, status: int, report: Any) -> None:
    """A sleeper that wakes is told that it was succeeded, or the recorded result of a run that is done."""
    told = json.loads((world.folder / "told-asleep").read_text(encoding="utf-8"))
    is_done = status == DONE and report in (None, told.get("report"))
    if (
        not is_done
        and (status, told.get("code")) != (REFUSED, "lease-taken")
        and (report is not None or status != ASKS)
    ):
        broken(Harm.STUCK, f"the sleeper woke and ended with {status}: {told}")
