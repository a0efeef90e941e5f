"""A harness that somebody stops keeps what it counted: hours of points are not lost to a Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

STOPPING = """
import os
from contextlib import contextmanager

KIND = "points that stop it"


@contextmanager
def opened(folder):
    tried = []

    def attempt(point):
        tried.append(point)
        if len(tried) == 3:
            os.kill(os.getpid(), {number})

    yield [str(number) for number in range(9)], attempt
"""
PROGRAM = "import sys, soak; soak.NAMES = ('stopping',); sys.exit(soak.main())"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_was_counted_until_a_signal_is_kept(number: signal.Signals, tmp_path: Path) -> None:
    """The point it was at is not counted: nobody knows what would have come of it."""
    (tmp_path / "stopping.py").write_text(STOPPING.format(number=int(number)), encoding="utf-8")
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(__file__).parent)]),
        "MILEPOST_SOAK_RESULTS": str(tmp_path / "results"),
    }
    done = subprocess.run([sys.executable, "-c", PROGRAM, "stopping"], env=environ, check=False)
    assert done.returncode == 130
    (line,) = (tmp_path / "results").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["tried"] == 2
