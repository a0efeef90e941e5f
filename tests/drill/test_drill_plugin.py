"""The fixture `drill` in a project of its own: passes, fails with the table, replays one point."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from drilling import TASKS

SUITE = """
import faulty_tasks as faulty
import good_tasks as good

def test_survives(drill):
    drill(good.restless, points=1)

def test_writes_in_a_step(drill):
    drill(faulty.writes_in_a_step, observe=faulty.ledger, points=1)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "test_tasks.py").write_text(SUITE, encoding="utf-8")
    return tmp_path


def run_pytest(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    given = {**os.environ, "PYTHONPATH": str(TASKS)}
    return subprocess.run(command, cwd=project, env=given, capture_output=True, text=True, check=False, timeout=240)


def test_the_fixture_passes_and_fails_with_the_table(project: Path) -> None:
    """The whole use is one line; what a failure says is the report, not a traceback of ours."""
    done = run_pytest(project)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "UNDECLARED  step mail_all connects to" in done.stdout
    assert "Not everything held" in done.stdout
    assert "plugin.py" not in done.stdout


def test_one_point_is_replayed_from_pytest(project: Path) -> None:
    done = run_pytest(project, "test_tasks.py::test_writes_in_a_step", "--drill-point", "body:durable:1")
    assert "FAILED  killed at a crash point: body:durable:1" in done.stdout
    replay = "replay: pytest test_tasks.py::test_writes_in_a_step --drill-point body:durable:1"
    assert replay in done.stdout
