"""Eight processes start one run at one moment, again and again until it is done: one runs, the others are told so.

A point is a seed. It draws the plan's flavour, the provider's character, how the run died before (or that it never
began: then eight create the store and the run), and which of the eight are killed at which crash point.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crowd import Crowd
from judge import finished_like
from tally import Harm, Points, broken
from toy_lab import FLAVOURS, Lab
from toy_orders import RUN_ID
from toy_provider import Character
from toy_world import KILLED, STARTS_MAX, World, provider

from milepost.records.model import RunResumed, StepStarted

KIND = "rounds of eight"
SEEDS = 10_000
EIGHT = 8
POINTS_MAX = 190
LEASE_S = 10**6
"""The toy clock jumps when somebody waits: nobody may take that for silence. Deaths are proven by the file lock."""
DONE, BUSY, ASKS = 0, 3, 4
EXPECTED = {DONE, BUSY, ASKS, KILLED}


class RacedWorld(World):
    """A world in which many are started at once."""

    def order(self, number: int, die_at: int | None) -> dict[str, Any]:
        """Return the order for one of many, which leaves what it was told in a file of its own."""
        environ: dict[str, object] = {"TOY_TOLD": f"told-{number}", "TOY_LEASE_S": LEASE_S}
        if die_at is not None:
            environ["MILEPOST_CRASH_AT"] = die_at
        return {
            "folder": str(self.folder),
            "environ": self._environ(environ),
            "flavour": self.flavour,
            "run_id": RUN_ID,
        }


@contextmanager
def opened(folder: Path) -> Iterator[Points]:
    crowd = Crowd()
    try:
        with provider(folder / "ledger.sqlite") as port:
            lab = Lab(folder, crowd, port)
            yield [str(seed) for seed in range(SEEDS)], lambda point: attempt(lab, crowd, int(point))
    finally:
        crowd.close()


def attempt(lab: Lab, crowd: Crowd, seed: int) -> None:
    """Let eight at one run until it is done. Raises: Violation."""
    chance = random.Random(seed)
    flavour, character = chance.choice(FLAVOURS), chance.choice(list(Character))
    _, expected = lab.reference(flavour, character)
    world = RacedWorld(folder_of(lab, seed), flavour, character, crowd, lab.port)
    if chance.random() < 0.7:
        world.start(MILEPOST_CRASH_AT=chance.randint(1, POINTS_MAX))
        world.answer_from_ledger()
    deaths = 1 + rounds(crowd, world, chance, expected.report)
    check_alone(world)
    check_bodies(world, deaths)
    finished_like(world, expected)


def folder_of(lab: Lab, seed: int) -> Path:
    return lab.folder / f"raced-{seed}"


def rounds(crowd: Crowd, world: RacedWorld, chance: random.Random, report: Any) -> int:
    """Start eight together until one has brought the run to its end; return how often one was killed or asked."""
    ended: Counter[int] = Counter()
    for number in range(STARTS_MAX):
        dying = chance.randint(0, 3) if number < 3 else 0
        statuses = crowd.together(
            [world.order(i, chance.randint(1, POINTS_MAX) if i < dying else None) for i in range(EIGHT)]
        )
        check_told(world, statuses, report)
        ended.update(statuses)
        if DONE in statuses:
            break
        world.answer_from_ledger()
    else:
        broken(Harm.STUCK, f"not done after {STARTS_MAX} rounds: {ended}")
    return ended[KILLED] + ended[ASKS]


def check_told(world: World, statuses: list[int], report: Any) -> None:
    """Each of the eight is told something true, and not everybody is told that somebody else runs."""
    if not set(statuses) <= EXPECTED:
        broken(Harm.STUCK, f"exit statuses {statuses}: {world.output()[-2000:]}")
    if set(statuses) == {BUSY}:
        broken(Harm.STUCK, "all eight were told that another one runs")
    for number, status in enumerate(statuses):
        told = json.loads((world.folder / f"told-{number}").read_text(encoding="utf-8")) if status == DONE else None
        if told is not None and told["report"] != report:
            broken(Harm.FALSELY_VERIFIED, f"told {told['report']} instead of {report}")


def check_alone(world: World) -> None:
    """Each of those that ran had a token of its own, in order; no start was recorded twice."""
    records = world.records()
    tokens = [record.token for record in records if isinstance(record, RunResumed)]
    if tokens != sorted(set(tokens)):
        broken(Harm.REPEATED, f"tokens of the resumes: {tokens}")
    starts = Counter((r.path, r.attempt) for r in records if isinstance(r, StepStarted))
    if twice := [start for start, count in starts.items() if count > 1]:
        broken(Harm.REPEATED, f"started twice under one number: {twice}")


def check_bodies(world: World, deaths: int) -> None:
    """A body runs once, and once more for each process that was killed or asked inside it."""
    flaky = 1
    often = {name: times for name, times in world.bodies().items() if times > 1 + deaths + flaky}
    if often:
        broken(Harm.REPEATED, f"{often} with {deaths} deaths, run {RUN_ID}")
