"""Child processes that load a user's code for a page: `resume --check` and `map`. The console itself never does.

Bounded in time, number and size of what they say. What they find is kept as long as the run's head is the same.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from milepost.runtime.children import nobody_answers

CHILD_S = 30.0
"""Seconds a child may take."""
TURN_S = 10.0
"""Seconds a page waits until it may ask a child."""
CHILDREN_MAX = 2
"""Children at once; more wait their turn."""
CHECKED = ("result", "request")
"""What goes with an answer and has a type that only the task knows."""
CHECKED_LENGTH_MAX = 60_000
KEPT_MAX = 64
"""Answers kept."""
SAID_SIZE_MAX = 4 * 1024 * 1024
"""Bytes of a child's answer that are read."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a child said: JSON, or why there is none in one sentence."""

    value: Any = None
    trouble: str = ""


@dataclass(slots=True)
class Children:
    """Runs `milepost` commands that read. Thread-safe; blocks its caller."""

    location: str  # of the store, handed on as MILEPOST_STORE
    _turns: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(CHILDREN_MAX))
    _kept: dict[tuple[object, ...], Said] = field(default_factory=dict)

    def check(self, run_id: str, head: int) -> Said:
        """Return what each of the six rules finds in a run as it stands at this head."""
        return self._once(("check", run_id, head), ["resume", "--check", "--json", "--", run_id], Path.cwd())

    def role(self, target: str, folder: Path) -> Said:
        """Return the role definition at a target, as `milepost map --json` prints it."""
        where = folder if folder.is_dir() else Path.cwd()
        return self._once(("map", target, str(folder)), ["map", "--json", "--", target], where)

    def fitting(self, question_id: str, choice: str, given: Mapping[str, str | None]) -> Said:
        """Return what is given with an answer as it is to be recorded; an error when it does not fit its types."""
        options = [f"--{name}={value}" for name, value in given.items() if value is not None and name in CHECKED]
        if sum(map(len, options)) > CHECKED_LENGTH_MAX:
            return Said(dict(given))  # too long for a command line: the resume checks it
        arguments = ["answer", "--check", "--json", *options, "--", question_id, choice]
        return self._in_turn(arguments, Path.cwd(), nobody_answers("the check of an answer"))

    def forget(self) -> None:
        """Forget what was kept: a file of the user's may be another now."""
        self._kept.clear()

    def _once(self, key: tuple[object, ...], arguments: Sequence[str], folder: Path) -> Said:
        kept = self._kept.get(key)
        if kept is not None:
            return kept
        said = self._in_turn(arguments, folder)
        if not said.trouble:
            while len(self._kept) >= KEPT_MAX:
                self._kept.pop(next(iter(self._kept)), None)
            self._kept[key] = said
        return said

    def _in_turn(self, arguments: Sequence[str], folder: Path, more: Mapping[str, str] | None = None) -> Said:
        """Ask a child when it is our turn; a visitor does not wait for many others, and the other pages stay open."""
        if not self._turns.acquire(timeout=TURN_S):
            return Said(trouble=f"{CHILDREN_MAX} others are being asked already; try again in a moment")
        try:
            return self._ask(arguments, folder, more or {})
        finally:
            self._turns.release()

    def _ask(self, arguments: Sequence[str], folder: Path, more: Mapping[str, str]) -> Said:
        command = [sys.executable, "-m", "milepost", *arguments]
        environ = {**os.environ, "MILEPOST_STORE": self.location, **more}
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=CHILD_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Said(trouble=f"it did not answer within {CHILD_S:.0f} seconds; type the command to wait longer")
        except OSError as error:
            return Said(trouble=f"its process could not be started: {error}")
        return _read(done.stdout, done.stderr)


def _read(said: bytes, beside: bytes) -> Said:
    if len(said) > SAID_SIZE_MAX:
        return Said(trouble=f"it said more than {SAID_SIZE_MAX} bytes")
    try:
        value = json.loads(said)
    except ValueError:
        last = beside.decode("utf-8", "replace").strip().splitlines()[-1:] or ["nothing"]
        return Said(trouble=f"it did not answer in JSON; the last it said was: {last[0][:300]}")
    error = value.get("error") if isinstance(value, dict) else None
    if isinstance(error, dict):
        return Said(value, f"{error.get('message', '')} {error.get('hint', '')}".strip())
    return Said(value)
