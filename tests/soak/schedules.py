"""Seeded schedules of asynchronous plans: gather, TaskGroup, map, threads, nested; with deaths, cancellations, errors.

A point is a seed. It draws the shape of the plan, the provider's character and the troubles, then every choice of
every loop. Each run must end with the names, outputs and ledger of the undisturbed one.
"""

from __future__ import annotations

import gc
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from async_plans import SHAPES
from async_worlds import AsyncWorld, Trouble
from schedule_worlds import CHARACTERS, MEMORY
from seeded_loop import Stalled
from tally import Harm, Points, broken

from milepost.errors import MilepostError

KIND = "schedules"
SEEDS = 200_000
DEATHS_MAX = 3
POINTS_MAX = 130
"""About as many crash points as the longest shape passes."""


@dataclass
class References:
    """What undisturbed runs come to, by shape; the provider's character must not matter."""

    _known: dict[str, tuple[dict[str, str], dict[str, int]]] = field(default_factory=dict)

    def of(self, shape: str) -> tuple[dict[str, str], dict[str, int]]:
        if shape not in self._known:
            world = AsyncWorld(shape, "honours-keys")
            world.finish(None)
            self._known[shape] = world.standing(), dict(world.provider.applied)
        return self._known[shape]


@contextmanager
def opened(folder: Path) -> Iterator[Points]:
    references = References()
    with warnings.catch_warnings():
        # A death, and a handle that is chosen before an older one, leave coroutines behind that never began.
        warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
        yield [str(seed) for seed in range(SEEDS)], lambda point: attempt(references, int(point))
        gc.collect()


def attempt(references: References, seed: int) -> None:
    """Go through one schedule, troubles and all. Raises: Violation."""
    chance = random.Random(seed)
    world = AsyncWorld(chance.choice(SHAPES), chance.choice(CHARACTERS), failing=chance.choice((0, 0, 1)))
    try:
        for trouble in troubles(chance):
            if world.start(chance.getrandbits(32), trouble):
                break
            if world.character == "forgets-keys":
                world.clock.move(MEMORY)
        world.finish(chance.getrandbits(32))
    except Stalled as stalled:
        broken(Harm.STUCK, f"{world.shape}: {stalled}")
    compare(references, world)


def troubles(chance: random.Random) -> list[Trouble]:
    return [_trouble(chance) for _ in range(chance.randint(0, DEATHS_MAX))]


def _trouble(chance: random.Random) -> Trouble:
    if chance.random() < 0.3:
        return Trouble(cancel_after=chance.randint(0, 40))
    return Trouble(die_at=chance.randint(1, POINTS_MAX))


def compare(references: References, world: AsyncWorld) -> None:
    expected, applied = references.of(world.shape)
    repeated = {key: count for key, count in world.provider.applied.items() if count > 1}
    if repeated:
        broken(Harm.REPEATED, f"{world.shape}: {repeated}")
    try:
        found = world.standing()
    except (AssertionError, MilepostError) as error:
        broken(Harm.FALSELY_VERIFIED, f"{world.shape}: {error}")
    left_out = sorted(set(expected) - set(found)) + sorted(set(applied) - set(world.provider.applied))
    if left_out:
        broken(Harm.SKIPPED, f"{world.shape}: {left_out}")
    differing = sorted(name for name in found if found[name] != expected.get(name))
    if differing or set(applied) != set(world.provider.applied):
        broken(Harm.FALSELY_VERIFIED, f"{world.shape}: {differing}")
