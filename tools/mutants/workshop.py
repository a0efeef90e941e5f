"""Copies the package, plants a bug in the copy and puts it before a judge. The package itself is never touched."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from mutants.catalogue import Judge, Mutant
from results import ROOT

COPIED = ("src", "tests", "pyproject.toml")
LINKED = ("examples", "docs", "README.md")
"""Read by some tests, changed by no mutant."""
JUDGE_S_MAX = 600.0
"""Seconds after which a judge that still runs has found a run that hangs: also a way of noticing."""


class Verdict(StrEnum):
    """What a judge made of a package."""

    NOTICED = "noticed"
    HUNG = "hung"
    NOTHING = "nothing"
    BROKEN = "broken"  # it could not judge: no test, no compiler, a file that cannot be read

    @property
    def caught(self) -> bool:
        return self in (Verdict.NOTICED, Verdict.HUNG)


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict, how long it took, and the last lines that were printed."""

    verdict: Verdict
    seconds: float
    said: str


@contextmanager
def copied(mutant: Mutant | None) -> Iterator[Path]:
    """Copy what is needed into a temporary folder, with the bug planted; None: as it is. Raises: Misplaced."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        folder = Path(name)
        for piece in COPIED:
            _copy(ROOT / piece, folder / piece)
        for piece in LINKED:
            (folder / piece).symlink_to(ROOT / piece)
        (folder / "temporary").mkdir()
        if mutant is not None:
            file = folder / mutant.file
            file.write_text(mutant.planted_in(file.read_text(encoding="utf-8")), encoding="utf-8")
        yield folder


def _copy(source: Path, target: Path) -> None:
    # Compiled files travel along with their times, so that only the changed file is compiled anew.
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy2(source, target)


def judged(folder: Path, judge: Judge, seconds_max: float = JUDGE_S_MAX) -> Judged:
    """Put a copy before a judge."""
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, *judge.run],
        cwd=folder,
        env=_environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=seconds_max)
        verdict = {0: Verdict.NOTHING, 1: Verdict.NOTICED}.get(process.returncode, Verdict.BROKEN)
    except subprocess.TimeoutExpired:
        verdict, said = Verdict.HUNG, ""
    finally:
        _end(process)
    return Judged(verdict, time.monotonic() - began, "\n".join(said.splitlines()[-30:]))


def _end(process: subprocess.Popen[str]) -> None:
    """End a judge and every process it left behind."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        process.communicate()


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MILEPOST", "PYTEST"))}
    path = os.pathsep.join([str(folder / "src"), str(ROOT / "tools")])
    paths = {"PYTHONPATH": path, "TMPDIR": folder / "temporary", "XDG_STATE_HOME": folder / "state"}
    return {**kept, **{name: str(path) for name, path in paths.items()}}
