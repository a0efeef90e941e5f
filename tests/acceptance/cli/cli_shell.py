"""A shell for tests: runs `milepost` as real processes in a folder of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = (sys.executable, "-m", "milepost")
RUN = ("run", "letters.py:letters", 'names=["ann","bob"]', "--run-id", "one")
RAW = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that must never reach a terminal from data."""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Shell:
    """One folder, one store, one environment."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self.folder, self.environ = folder, dict(environ)

    def run(self, *words: str, **extra: str) -> Ended:
        """Run one command to its end; `extra` are environment variables for it."""
        done = subprocess.run(
            [*COMMAND, *words],
            cwd=self.folder,
            env={**self.environ, **extra},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def start(self, *words: str, **extra: str) -> subprocess.Popen[str]:
        """Start one command; the caller ends it."""
        return subprocess.Popen(
            [*COMMAND, *words],
            cwd=self.folder,
            env={**self.environ, **extra},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_hear_signals,
        )

    def question(self) -> str:
        """Return the id of the oldest open question."""
        return str(self.run("inbox", "--json").json["questions"][0]["question_id"])


def _hear_signals() -> None:
    """Undo what a test run in the background inherits: signals that are ignored stay ignored."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Gate:
    """The two named pipes of a gated step: it says that it runs, and waits to be let go."""

    def __init__(self, folder: Path, name: str) -> None:
        self._ready, self._go = folder / f"{name}.runs", folder / f"{name}.go"
        os.mkfifo(self._ready)
        os.mkfifo(self._go)

    def wait_until_inside(self) -> None:
        with self._ready.open(encoding="utf-8") as ready:
            assert ready.read() == "here\n"

    def let_go(self) -> None:
        with self._go.open("w", encoding="utf-8") as go:
            go.write("go")


def read_until(process: subprocess.Popen[str], words: str) -> str:
    """Read a process's stderr up to the line that contains some words; return that line."""
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            return line
    raise AssertionError(f"it ended without saying {words!r}")
