"""The power goes under a real ext4 whose disk forgets what was not flushed: mount it again, prove, resume, compare.

A point is `FLAVOUR N SHARE`: at the n-th crash point the process is killed and the disk keeps a share of what was not
flushed by then, drawn block by block. What the run showed as durable must be there, and its end must be the same. Wants
root, FUSE and loop devices. The provider can be looked up and keeps no keys: what is sent twice is applied twice.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from forgetful_disk import Disk
from judge import finished_like
from power_cut import OUTSIDE, proven
from tally import Missing, NotReached, Points
from toy_lab import FLAVOURS, Lab
from toy_provider import Character
from toy_world import KILLED, Starter, World, provider

KIND = "power cuts of an ext4"
CHARACTER = Character.LOOKED_UP
SHARES = (0.0, 0.5, 0.9)
IMAGE_BYTES = 16 * 1024 * 1024
MAKE = ("mkfs.ext4", "-q", "-F", "-b", "4096", "-J", "size=4", "-E", "lazy_itable_init=0,lazy_journal_init=0")
WANTED = ("mkfs.ext4", "losetup", "mount", "umount")


@dataclass
class Bench:
    """Where disks are taken out and put in, and the undisturbed runs."""

    folder: Path
    image: Path
    lab: Lab
    numbers: Iterator[int]

    @contextmanager
    def on_forgetful_disk(self, mounted_on: Path) -> Iterator[Disk]:
        disk = Disk(self.image, self.folder / f"disk-{next(self.numbers)}")
        with closing(disk), mounted(disk.path, mounted_on):
            yield disk


@contextmanager
def opened(folder: Path) -> Iterator[Points]:
    demand()
    image = folder / "image"
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    subprocess.run([*MAKE, str(image)], check=True)
    with ExitStack() as undo:
        starter = undo.enter_context(closing(Starter()))
        lab = Lab(folder, starter, undo.enter_context(provider(folder / "ledger.sqlite")))
        bench = Bench(folder, image, lab, count())
        with bench.on_forgetful_disk(folder / "first"):
            pass  # says now what is missing here
        yield list(points(lab)), lambda point: cut_at(bench, point)


def demand() -> None:
    """Raises: Missing."""
    if os.geteuid() != 0 or not os.access("/dev/fuse", os.W_OK):
        raise Missing("a disk of one's own wants root and /dev/fuse")
    if without := [name for name in WANTED if shutil.which(name) is None]:
        raise Missing(f"no {', '.join(without)}")


def points(lab: Lab) -> Iterator[str]:
    for flavour in FLAVOURS:
        passed = lab.reference(flavour, CHARACTER)[0].points()
        yield from (f"{flavour} {number} {share}" for number in range(1, len(passed) + 1) for share in SHARES)


@contextmanager
def mounted(file: Path, on: Path) -> Iterator[None]:
    """Mount a file that holds an ext4. Raises: Missing when there is no loop device or no disk."""
    on.mkdir(exist_ok=True)
    done = subprocess.run(["mount", "-t", "ext4", "-o", "loop", str(file), str(on)], capture_output=True, text=True)
    if done.returncode:
        raise Missing(f"no ext4 can be mounted: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(on)], check=True)


def cut_at(bench: Bench, point: str) -> None:
    """Kill a run, cut the power, put the disk in again, prove, resume, compare. Raises: Violation, NotReached."""
    flavour, number, share = point.split()
    name, place = f"cut-{next(bench.numbers)}", bench.folder / "mounted"
    left = bench.folder / name
    with bench.on_forgetful_disk(place) as disk:
        world = World(place / name, flavour, CHARACTER, bench.lab.starter, bench.lab.port)
        made_durable(world.folder)
        status = world.start(MILEPOST_CRASH_AT=number)
        disk.cut(float(share), point.replace(" ", "-"), left)
        outside = {path.name: path.read_bytes() for path in world.folder.iterdir() if path.name.startswith(OUTSIDE)}
        shown = shown_by(world)
    if status == 0:
        raise NotReached
    assert status == KILLED, (status, outside.get("output"))
    with mounted(left, place):
        for file, data in outside.items():
            (world.folder / file).write_bytes(data)
        proven(world, shown)
        finished_like(world, bench.lab.reference(flavour, CHARACTER)[1])
    left.unlink()


def made_durable(folder: Path) -> None:
    """Let the world have been there for long."""
    for path in (*folder.iterdir(), folder, folder.parent):
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def shown_by(world: World) -> int:
    """Return the newest record that the run knew to be durable when it died: its witness says so."""
    files = [path.read_bytes() for path in (world.folder / "state").rglob("witness/*[!s]")]
    return max((int(line.split()[1]) for data in files for line in data.splitlines() if line), default=0)
