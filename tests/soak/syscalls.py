"""SIGKILL before, after and in the middle of every I/O call of the toy run; resume, compare with the undisturbed run.

A point is `FLAVOUR CHARACTER WHEN N NAME`: the n-th call of libc that writes, syncs, names, sends or receives.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from judge import finished_like
from shim import Call, ShimmedStarter, compiled, order, recorded
from tally import NotReached, Points
from toy_provider import Character
from toy_world import KILLED, Standing, World, provider

KIND = "kill points"
CLASSES = "wsnc"
COMBINATIONS = [
    (flavour, character)
    for character in (Character.LOOKED_UP, Character.HONOURS_KEYS, Character.NEITHER, Character.NEVER_ANSWERS)
    for flavour in ("sync", "async")
]
TEARABLE = ("write", "pwrite", "send")


class Toys:
    """Worlds of the toy run behind the shim, with one undisturbed reference for each combination."""

    def __init__(self, folder: Path, starter: ShimmedStarter, port: int) -> None:
        self._folder, self._starter, self._port = folder, starter, port
        self._numbers = count()
        self._references: dict[tuple[str, str], Standing] = {}

    def world(self, flavour: str, character: str) -> World:
        name = f"{flavour}-{character}-{next(self._numbers)}"
        return World(self._folder / name, flavour, character, self._starter, self._port)

    def calls(self, flavour: str, character: str, classes: str = CLASSES) -> list[Call]:
        """Run undisturbed, keep the outcome as the reference, return the calls it made."""
        world = self.world(flavour, character)
        trace = world.folder / "trace"
        status = world.start(**order(classes, record=trace))
        assert status == 0, world.output()
        self._references[flavour, character] = world.standing()
        return recorded(trace)

    def reference(self, flavour: str, character: str) -> Standing:
        if (flavour, character) not in self._references:
            self.calls(flavour, character)
        return self._references[flavour, character]


@contextmanager
def toys(folder: Path) -> Iterator[Toys]:
    """Start the warm process and the provider. Raises: Missing."""
    starter = ShimmedStarter(compiled(folder))
    try:
        with provider(folder / "ledger.sqlite") as port:
            yield Toys(folder, starter, port)
    finally:
        starter.close()


def points_of(flavour: str, character: str, calls: list[Call]) -> Iterator[str]:
    """Name the points that the calls of an undisturbed run offer."""
    for number, call in enumerate(calls, 1):
        for when in ("before", "after", *(["torn"] if call.name in TEARABLE and len(call.data) > 1 else [])):
            yield f"{flavour} {character} {when} {number} {call.name}"


@contextmanager
def opened(folder: Path) -> Iterator[Points]:
    with toys(folder) as lab:
        points = [p for pair in COMBINATIONS for p in points_of(*pair, lab.calls(*pair))]
        yield points, lambda point: killed_at(lab, point)


def killed_at(lab: Toys, point: str) -> None:
    """Kill one run there, finish it, compare. Raises: Violation, NotReached."""
    flavour, character, when, number, _ = point.split()
    world = lab.world(flavour, character)
    status = world.start(**order(CLASSES, at=int(number), do=when))
    if status == 0:
        raise NotReached
    assert status == KILLED, (point, status, world.output())
    finished_like(world, lab.reference(flavour, character))
