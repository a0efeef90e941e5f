"""SIGKILL at every crash point of the toy run, in both flavours, with every character of the provider; resume, compare.

A point is `FLAVOUR CHARACTER N`. `tests/crash/test_every_point.py` kills at all of one combination and at a sample of
the others, and looks closer: at what was asked, and at which bodies ran again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta
from itertools import product
from pathlib import Path

from judge import finished_like
from tally import NotReached, Points
from toy_lab import FLAVOURS, Lab
from toy_provider import MEMORY_S, Character
from toy_world import KILLED, Starter, provider

KIND = "kill points"


@contextmanager
def opened(folder: Path) -> Iterator[Points]:
    with ExitStack() as undo:
        starter = undo.enter_context(closing(Starter()))
        lab = Lab(folder, starter, undo.enter_context(provider(folder / "ledger.sqlite")))
        points = [
            f"{flavour} {character} {number}"
            for flavour, character in product(FLAVOURS, Character)
            for number in range(1, len(lab.reference(flavour, character)[0].points()) + 1)
        ]
        yield points, lambda point: killed_at(lab, point)


def killed_at(lab: Lab, point: str) -> None:
    """Kill one run there, finish it, compare. Raises: Violation, NotReached."""
    flavour, character, number = point.split()
    world = lab.world(flavour, character)
    status = world.start(MILEPOST_CRASH_AT=number)
    if status == 0:
        raise NotReached
    assert status == KILLED, (point, status, world.output())
    if character == Character.FORGETS_KEYS:
        world.clock().move(timedelta(seconds=MEMORY_S))
    finished_like(world, lab.reference(flavour, character)[1])
