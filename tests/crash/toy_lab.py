"""The crash laboratory: which points to kill at, how, and what must be equal afterwards. Used by `test_every_point`."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count, product
from pathlib import Path
from typing import Any

from toy_provider import MEMORY_S, Character
from toy_world import KILLED, Standing, Starter, World

from milepost.records.model import IntentRecorded, OutcomeRecorded

FLAVOURS = ("sync", "async")
EXHAUSTIVE = ("sync", Character.NEITHER)
COVERING = ("async", Character.LOOKED_UP)
SAMPLE = 6
SENDING_SAMPLE = 12
SEED = 20261130
NOBODY_KNOWS = (Character.NEITHER, Character.FORGETS_KEYS)
"""Characters with which an open intent can only be settled by a person."""


@dataclass
class Lab:
    """What all tests here share: warm processes, the provider, references; which points were seen and killed at."""

    folder: Path
    starter: Starter
    port: int
    seen: dict[str, str] = field(default_factory=dict)  # point -> where it was seen first
    killed: set[str] = field(default_factory=set)
    again: dict[str, tuple[Any, ...]] = field(default_factory=dict)  # point of a resume -> how to kill there
    _numbers: Iterator[int] = field(default_factory=count)
    _references: dict[tuple[str, str], tuple[World, Standing]] = field(default_factory=dict)
    _campaigns: set[tuple[str, str]] = field(default_factory=set)

    def world(self, flavour: str, character: str) -> World:
        folder = self.folder / f"{flavour}-{character}-{next(self._numbers)}"
        return World(folder, flavour, character, self.starter, self.port)

    def reference(self, flavour: str, character: str) -> tuple[World, Standing]:
        """Return an undisturbed run, which every character must end equal to."""
        if (flavour, character) not in self._references:
            world = self.world(flavour, character)
            assert world.start() == 0, world.output()
            self._references[flavour, character] = (world, world.standing())
            self.note(world.points(), f"{flavour} {character}")
        return self._references[flavour, character]

    def note(self, points: list[str], where: str) -> None:
        for point in points:
            self.seen.setdefault(point, where)

    def campaigns(self) -> None:
        for flavour, character in product(FLAVOURS, Character):
            self.campaign(flavour, character)

    def campaign(self, flavour: str, character: str) -> None:
        """Kill one combination at its points, once per session."""
        if (flavour, character) in self._campaigns:
            return
        self._campaigns.add((flavour, character))
        points = self.reference(flavour, character)[0].points()
        for number in chosen(flavour, character, points):
            kill_and_compare(self, flavour, character, number)


def chosen(flavour: str, character: str, points: list[str]) -> list[int]:
    """Return the numbers (from 1) of the points to kill at; `make soak` kills at all of all combinations."""
    every = range(1, len(points) + 1)
    if (flavour, character) == EXHAUSTIVE:
        return list(every)
    seeded = random.Random(SEED)
    sending = [n for n in every if in_a_send(points, n)]
    others = sorted(set(every) - set(sending))
    if (flavour, character) == COVERING:
        return sorted({*sending, *one_of_each(points, every, seeded)})
    sending = sorted({*one_of_each(points, sending, seeded), *seeded.sample(sending, SENDING_SAMPLE)})
    return sorted([*sending, *seeded.sample(others, SAMPLE)])


def one_of_each(points: list[str], numbers: Sequence[int], seeded: random.Random) -> list[int]:
    """Return one number of each kind of point among these."""
    kinds: dict[str, list[int]] = {}
    for number in numbers:
        kinds.setdefault(points[number - 1], []).append(number)
    return [seeded.choice(those) for those in kinds.values()]


def in_a_send(points: list[str], number: int) -> bool:
    """Say whether a send is under way at a point: from its intent to what is next durable after its outcome."""
    for point in reversed(points[:number]):
        if point.startswith("append:intent_recorded"):
            return True
        if point.startswith("append:outcome_recorded") and point.endswith("durable"):
            return False
        if point.startswith(("append:step_started", "body")):
            return False
    return False


def open_intents(world: World) -> set[str]:
    """Read the journal as it was left: paths of effects whose intent is durable and whose outcome is not."""
    found: set[str] = set()
    for record in world.records():
        if isinstance(record, IntentRecorded):
            found.add(record.path)
        elif isinstance(record, OutcomeRecorded):
            found.discard(record.path)
    return found


def kill_and_compare(lab: Lab, flavour: str, character: str, *numbers: int) -> None:
    """Kill the first start at the first number, the next at the second, and so on (0: let it ask); finish, compare."""
    world = lab.world(flavour, character)
    where = f"{flavour} {character} killed at {numbers}"
    left: set[str] = set()
    for number in numbers:
        status = world.start(MILEPOST_CRASH_AT=number)
        assert status == (KILLED if number else 4), (where, status, world.output())
        left |= open_intents(world)
        world.answer_from_ledger()
        if character == Character.FORGETS_KEYS:
            world.clock().move(timedelta(seconds=MEMORY_S))
    asked = world.finish()
    compare(lab, world, where)
    if len(numbers) == 1:
        expected = {"outcome-unknown"} if left and character in NOBODY_KNOWS else set()
        assert set(asked) == expected, (where, left, asked)
        check_repeated_bodies(lab, world, where, asked)
        remember(lab, world, numbers[0], where)


def compare(lab: Lab, world: World, where: str) -> None:
    _, expected = lab.reference(world.flavour, world.character)
    found = world.standing()
    assert found == expected, where
    assert set(found.sent.values()) == {1}, where


def check_repeated_bodies(lab: Lab, world: World, where: str, asked: list[str]) -> None:
    """One kill repeats at most the body it hit and those around it, each once."""
    reference, _ = lab.reference(world.flavour, world.character)
    more: Counter[str] = world.bodies() - reference.bodies()
    if more["outer"] > 1 and asked:
        more["outer"] -= 1  # it asked inside, and began once more when it was answered
    assert set(more.values()) <= {1}, (where, more)
    families = ({"outer", "inner ALPHA", "inner alpha", "inner beta"}, {"split", "has_words"})
    assert len(more) <= 1 or any(set(more) <= family for family in families), (where, more)


def remember(lab: Lab, world: World, number: int, where: str) -> None:
    """Note which point was killed at, and which points only its resumes pass: those are killed at later."""
    flavour, character = world.flavour, world.character
    lab.killed.add(lab.reference(flavour, character)[0].points()[number - 1])
    for start in range(2, world.started + 1):
        points = world.points(start)
        lab.note(points, f"{where}, start {start}")
        undisturbed = [0] * (start - 2)
        for index, point in enumerate(points, 1):
            lab.again.setdefault(point, (flavour, character, number, *undisturbed, index))
