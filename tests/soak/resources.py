"""The machine runs out: a disk of every size, every number of descriptors, memory that kills a step each time.

Points: `disk KIB FLAVOUR` (a small tmpfs that fills up and is then enlarged), `descriptors N FLAVOUR`, and
`memory HOW`, where HOW is `killed` (a memory cgroup) or `refused` (an address space limit).
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import count
from pathlib import Path

from judge import finished_like, holds
from shim import ShimmedStarter, compiled
from tally import Harm, Missing, NotReached, Points, broken
from toy_provider import Character
from toy_world import Standing, World, provider

from milepost.stores.sqlite.store import SqliteStore

KIND = "faults"
FLAVOURS = ("sync", "async")
CHARACTER = Character.LOOKED_UP
PAGE_KIB = 4
ENOUGH_KIB = 1024
"""The toy run needs less: with this much nothing fails."""
DESCRIPTORS = range(4, 28)
STARTS_MAX = 3
"""Starts of a step without a retry policy, then a question (design §5)."""
CGROUP = Path("/sys/fs/cgroup/memory")
LIMIT_BYTES = 256 * 1024 * 1024
ASKS = 4


class Machine:
    """Toy worlds on this machine, and what may be taken from it."""

    def __init__(self, folder: Path, starter: ShimmedStarter, port: int) -> None:
        self.folder, self.starter, self.port = folder, starter, port
        self._numbers = count()
        self._references: dict[str, Standing] = {}

    def world(self, flavour: str, folder: Path | None = None) -> World:
        return World((folder or self.folder) / f"w{next(self._numbers)}", flavour, CHARACTER, self.starter, self.port)

    def reference(self, flavour: str) -> Standing:
        if flavour not in self._references:
            world = self.world(flavour)
            assert world.start() == 0, world.output()
            self._references[flavour] = world.standing()
        return self._references[flavour]

    @contextmanager
    def descriptors(self, most: int) -> Iterator[None]:
        """Let what the warm process starts have so many descriptors."""
        pid = self.starter.pid
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, before[1]))
        try:
            yield
        finally:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


@contextmanager
def opened(folder: Path) -> Iterator[Points]:
    with ExitStack() as undo:
        starter = undo.enter_context(closing(ShimmedStarter(compiled(folder))))
        machine = Machine(folder, starter, undo.enter_context(provider(folder / "ledger.sqlite")))
        yield list(points()), lambda point: run_out(machine, point)


def points() -> Iterator[str]:
    for flavour in FLAVOURS:
        if can_mount():
            yield from (f"disk {kib} {flavour}" for kib in range(PAGE_KIB, ENOUGH_KIB, PAGE_KIB))
        yield from (f"descriptors {most} {flavour}" for most in DESCRIPTORS)
    yield "memory refused"
    if os.access(CGROUP, os.W_OK) and (CGROUP / "memory.limit_in_bytes").exists():
        yield "memory killed"


def run_out(machine: Machine, point: str) -> None:
    what, *how = point.split()
    if what == "disk":
        disk(machine, int(how[0]), how[1])
    elif what == "descriptors":
        few_descriptors(machine, int(how[0]), how[1])
    else:
        poisoned(machine.folder / f"memory-{how[0]}", how[0])


# ── a small disk ──


def can_mount() -> bool:
    return os.geteuid() == 0 and subprocess.run(["sh", "-c", "command -v mount"], capture_output=True).returncode == 0


@contextmanager
def small_disk(folder: Path, kib: int) -> Iterator[None]:
    """Mount a file system of this size. Raises: Missing."""
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(folder)], capture_output=True, text=True
    )
    if done.returncode:
        raise Missing(f"no tmpfs can be mounted: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def disk(machine: Machine, kib: int, flavour: str) -> None:
    """Run until the disk is full, once more while it is, then on one that is large enough."""
    folder = machine.folder / f"disk-{kib}-{flavour}"
    with small_disk(folder, kib):
        try:
            world = machine.world(flavour, folder)
            statuses = [world.start(), world.start()]
        except OSError as error:
            raise NotReached from error  # not even the inputs fit
        if statuses == [0, 0]:
            raise NotReached
        subprocess.run(["mount", "-o", f"remount,size={ENOUGH_KIB * 16}k", str(folder)], check=True)
        if (world.folder / "store.sqlite").exists():
            holds(world)
        finished_like(world, machine.reference(flavour))
    folder.rmdir()


# ── few descriptors ──


def few_descriptors(machine: Machine, most: int, flavour: str) -> None:
    world = machine.world(flavour)
    with machine.descriptors(most):
        status = world.start()
    if status == 0:
        raise NotReached
    if (world.folder / "store.sqlite").exists():
        holds(world)
    finished_like(world, machine.reference(flavour))


# ── a step that takes more memory than there is ──


def poisoned(folder: Path, how: str) -> None:
    """Start a plan whose second step never fits: three starts, then a question at once. Raises: Violation."""
    folder.mkdir()
    with limited(how) as limit:
        statuses = [start_poisoned(folder, limit) for _ in range(STARTS_MAX + 2)]
    bodies = (folder / "bodies").read_text(encoding="utf-8").split()
    died = {"killed": -signal.SIGKILL, "refused": 1}[how]
    if statuses != [died] * STARTS_MAX + [ASKS, ASKS]:
        broken(Harm.STUCK, f"exit statuses {statuses}, {(folder / 'output').read_text(encoding='utf-8')[-1000:]}")
    if bodies != ["gentle"] + ["greedy"] * STARTS_MAX:
        broken(Harm.REPEATED, f"bodies {bodies}")
    with closing(SqliteStore(folder / "store.sqlite", create=False)) as store:
        kinds = [question.kind for question in store.questions("r")]
    if kinds != ["attempts_used"]:
        broken(Harm.STUCK, f"open questions: {kinds}")


@contextmanager
def limited(how: str) -> Iterator[list[str]]:
    """Yield the command that starts another one with little memory."""
    if how == "refused":
        yield ["prlimit", f"--as={4 * LIMIT_BYTES}"]
        return
    group = CGROUP / f"soak-{os.getpid()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(LIMIT_BYTES))
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
    finally:
        group.rmdir()


def start_poisoned(folder: Path, limit: list[str]) -> int:
    program = Path(__file__).with_name("poison_plan.py")
    environ = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": os.pathsep.join(sys.path)}
    with (folder / "output").open("ab") as output:
        command = [*limit, sys.executable, str(program)]
        return subprocess.run(command, cwd=folder, env=environ, stdout=output, stderr=output, check=False).returncode
