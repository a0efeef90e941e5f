"""Every I/O call fails: input/output error, full disk, no descriptor, lost connection; once, and from there on.

A point is `FLAVOUR CHARACTER ERRNO[+] N NAME`. The process lives and must say so or go on; then the disk is well again,
the run is resumed and compared with the undisturbed run.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from judge import finished_like, holds
from shim import order
from syscalls import Toys, toys
from tally import Harm, Points, broken
from toy_provider import Character
from toy_world import World

KIND = "faults"
COUNTED = {"EIO": "ws", "ENOSPC": "wn", "EMFILE": "d", "ECONNRESET": "c"}
"""Which calls can fail in which way; the letters are those of the shim."""
COMBINATIONS = [("sync", Character.LOOKED_UP), ("async", Character.LOOKED_UP), ("sync", Character.HONOURS_KEYS)]
UNCAUGHT = 99
"""What a toy start returns when an exception left `start`, which opens the store outside its `try`."""


@contextmanager
def opened(folder: Path) -> Iterator[Points]:
    with toys(folder) as lab:
        yield [p for pair in COMBINATIONS for p in points_of(lab, *pair)], lambda point: failed_at(lab, point)


def points_of(lab: Toys, flavour: str, character: str) -> Iterator[str]:
    for name, classes in COUNTED.items():
        for number, call in enumerate(lab.calls(flavour, character, classes), 1):
            for onward in ("", "+"):
                yield f"{flavour} {character} {name}{onward} {number} {call.name}"


def failed_at(lab: Toys, point: str) -> None:
    """Fail one call of one run, finish the run, compare. Raises: Violation."""
    flavour, character, name, number, _ = point.split()
    world = lab.world(flavour, character)
    what = f"{getattr(errno, name.rstrip('+'))}{'+' if name.endswith('+') else ''}"
    status = world.start(**order(COUNTED[name.rstrip("+")], at=int(number), do=what))
    said_so(world, status)
    if (world.folder / "store.sqlite").exists():
        holds(world)
    finished_like(world, lab.reference(flavour, character))


def said_so(world: World, status: int) -> None:
    """See that the process went on, or ended with an error of ours. Raises: Violation."""
    last = world.output().strip().rpartition("\n")[2]
    if status == UNCAUGHT and not last.startswith("milepost.errors."):
        broken(Harm.STUCK, f"a foreign exception: {last}")
    if status not in (0, 1, 4, 6, UNCAUGHT):
        broken(Harm.STUCK, f"exit status {status}: {world.output()[-2000:]}")
