"""One month on stage: a folder with mails and orders, a world of its own, and the command line in child processes.

Everything a child sees comes from `Stage.environment`: no store, key or address of the reader's own leaks in, and the
witness stays in the stage's folder. Called by `__main__` and by the demo's tests.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from invoices.world import World, lay_out, start_world

INVOICES = Path(__file__).resolve().parents[1]
TARGET = f"{INVOICES / 'reconcile.py'}:reconcile"
RUN = "2026-10"
SETTLE_S = "1"
CHILD_S_MAX = 300.0
OURS = ("MILEPOST_", "INVOICES_", "ANTHROPIC_", "OPENAI_")


class ChildFailed(Exception):
    """A child process did not end as it should have: killed where it should live, or alive where it should die."""

    code = "child-failed"
    hint = "Read the log named in the message; run the demo with --keep to look at the folders afterwards."

    def __init__(self, *, command: str, expected: str, found: str, log: Path) -> None:
        self.command, self.expected, self.found, self.log = command, expected, found, log
        said = log.read_text("utf-8", "replace").strip().splitlines()[-5:] if log.exists() else []
        told = "\n".join(["", *(f"  {line}" for line in said)]) if said else ""
        super().__init__(f"{command}: expected {expected}, found {found} (log: {log}).{told}")


@dataclass(frozen=True, slots=True)
class Stage:
    """A month's folder and its running world. The run has the same id on every stage, so its keys are the same too."""

    name: str
    folder: Path
    world: World

    @property
    def store(self) -> Path:
        """Give the place of the run's store."""
        return self.folder / ".milepost" / "store.sqlite"

    def start(self, *, die_at: str | None = None) -> None:
        """Start the month in a child process; it ends, or is killed at the place `die_at`. Raises: ChildFailed."""
        self._milepost(["run", TARGET, f"month={RUN}", "--run-id", RUN], die_at)

    def resume(self, *, die_at: str | None = None) -> None:
        """Resume the month in a new process, as a person would. Raises: ChildFailed."""
        self._milepost(["resume", RUN], die_at)

    def environment(self) -> dict[str, str]:
        """Give what a child of this stage sees."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        paths = [str(INVOICES.parent), inherited.get("PYTHONPATH", "")]
        return {
            **inherited,
            "PYTHONPATH": os.pathsep.join(path for path in paths if path),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "MILEPOST_STORE": str(self.store),
            "INVOICES_SETTLE_S": os.environ.get("INVOICES_SETTLE_S", SETTLE_S),
            # One at a time: then the n-th attachment, call or mail is the same one in every process.
            "INVOICES_AT_ONCE": "1",
            **self.world.environment(),
        }

    def _milepost(self, arguments: list[str], die_at: str | None) -> None:
        environment = self.environment() | ({"MILEPOST_CRASH_AT": die_at} if die_at else {})
        log = self.folder / "milepost.log"
        found = _child([sys.executable, "-m", "milepost", *arguments], self.folder, environment, log)
        if found != (-signal.SIGKILL if die_at else 0):
            wanted = f"to die at `{die_at}`" if die_at else "exit status 0"
            status = f"no end within {CHILD_S_MAX:g} s" if found is None else f"exit status {found}"
            raise ChildFailed(command=" ".join(["milepost", *arguments]), expected=wanted, found=status, log=log)


def _child(command: list[str], folder: Path, environment: Mapping[str, str], log: Path) -> int | None:
    """Run one child to its end, give its status; it is killed if it takes too long (None) or we are interrupted.

    Crash: the child lives on and finishes on its own.
    """
    with open(log, "ab") as said:
        try:
            return subprocess.run(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                timeout=CHILD_S_MAX,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            return None


@contextmanager
def staged(name: str, folder: Path, invoice_count: int) -> Iterator[Stage]:
    """Lay out the first `invoice_count` mails of the carried month and start a world for them; stop it on the way out.

    Crash: a folder without a run; nobody goes on from it.
    """
    lay_out(folder, invoice_count)
    with start_world(folder / "world") as world:
        yield Stage(name, folder, world)
