"""SIGKILL around the I/O calls of the invoice demo: a month with a mailbox, a model, an accounting queue and mails.

A point is `WHEN N NAME`, as in `syscalls`. There are thousands; a seeded sample of them is tried.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from invoices.demo.books import Books, differences, read_books
from invoices.demo.stage import RUN, TARGET, ChildFailed, Stage, staged
from shim import Call, compiled, order, recorded
from tally import Harm, NotReached, Points, broken

from milepost.runtime.verify import verify_run
from milepost.stores.sqlite.store import SqliteStore

KIND = "kill points"
CLASSES = "wsnc"
MAILS = 5
TEARABLE = ("write", "pwrite", "send")
SKIP = ("milepost.log", ".pyc", "/dev/null", "trace")
DIED_UNRECORDED_MAX = 1
"""Model calls that one kill may waste: the answer died with its process."""


@dataclass
class Demo:
    """The demo behind the shim, and the undisturbed month it is compared with."""

    folder: Path
    library: Path
    numbers: Iterator[int]
    reference: Books | None = None

    @contextmanager
    def stage(self) -> Iterator[Stage]:
        folder = self.folder / f"month-{next(self.numbers)}"
        with staged("drilled", folder, MAILS) as stage:
            yield stage
        shutil.rmtree(folder)

    def start(self, stage: Stage, armed: Mapping[str, object]) -> int:
        """Start the month behind the armed shim; return the exit status."""
        environ = {
            **stage.environment(),
            **{name: str(value) for name, value in armed.items()},
            "LD_PRELOAD": str(self.library),
        }
        command = [sys.executable, "-m", "milepost", "run", TARGET, f"month={RUN}", "--run-id", RUN]
        with (stage.folder / "milepost.log").open("ab") as said:
            return subprocess.run(
                command, cwd=stage.folder, env=environ, stdin=subprocess.DEVNULL, stdout=said, stderr=said, check=False
            ).returncode

    def undisturbed(self) -> list[Call]:
        """Run the month once, keep its books, return the calls it made."""
        with self.stage() as stage:
            trace = stage.folder / "trace"
            status = self.start(stage, order(CLASSES, record=trace, skip=SKIP))
            assert status == 0, (stage.folder / "milepost.log").read_text("utf-8")
            self.reference = read_books(stage)
            return recorded(trace)


@contextmanager
def opened(folder: Path) -> Iterator[Points]:
    demo = Demo(folder, compiled(folder), count())
    calls = demo.undisturbed()
    points = [
        f"{when} {number} {call.name}"
        for number, call in enumerate(calls, 1)
        for when in ("before", "after", *(["torn"] if call.name in TEARABLE else []))
    ]
    yield points, lambda point: killed_at(demo, point)


def killed_at(demo: Demo, point: str) -> None:
    """Kill one month there, start it again, compare. Raises: Violation, NotReached."""
    when, number, _ = point.split()
    with demo.stage() as stage:
        status = demo.start(stage, order(CLASSES, at=int(number), do=when, skip=SKIP))
        if status == 0:
            raise NotReached
        assert status == -signal.SIGKILL, (point, status, (stage.folder / "milepost.log").read_text("utf-8"))
        try:
            stage.start()
        except ChildFailed as failed:
            broken(Harm.STUCK, failed)
        proven(stage)
        assert demo.reference is not None
        compared(demo.reference, read_books(stage))


def proven(stage: Stage) -> None:
    with closing(SqliteStore(stage.store, create=False)) as store:
        verdicts = verify_run(store, RUN, None, {"XDG_STATE_HOME": str(stage.folder / "state")})
    bad = [verdict for verdict in verdicts if not verdict.ok]
    if bad:
        broken(Harm.FALSELY_VERIFIED, bad)


def compared(expected: Books, found: Books) -> None:
    """Compare what the providers hold and what the journal points at. Raises: Violation."""
    if found.duplicate_count():
        broken(Harm.REPEATED, f"{found.duplicate_count()} duplicates")
    if expected.entries.keys() - found.entries.keys() or expected.mails.keys() - found.mails.keys():
        broken(Harm.SKIPPED, differences(expected, found, model_calls_more_max=DIED_UNRECORDED_MAX))
    if differs := differences(expected, found, model_calls_more_max=DIED_UNRECORDED_MAX):
        broken(Harm.FALSELY_VERIFIED, differs)
