"""Who answers from a namespace of its own: a step's child in disguise does not, a person in the run's container may."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli_shell import COMMAND, Shell

PLAN = Path(__file__).parent / "paying.py"
USER = "unshare -U --map-root-user"
WITHOUT_PROC = "sh -c 'mount -t tmpfs none /proc; exec \"$@\"' sh"
RENAMED = "sh -c 'hostname elsewhere; exec \"$@\"' sh"


def _works(command: str) -> bool:
    try:
        return subprocess.run([*shlex.split(command), "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


pytestmark = pytest.mark.skipif(
    not (sys.platform == "linux" and _works(f"{USER} --fork --pid --mount-proc")),
    reason="this machine lets nobody make namespaces",
)


@pytest.fixture
def office(shell: Shell) -> Shell:
    shutil.copy(PLAN, shell.folder)
    return shell


@pytest.mark.parametrize(
    "below",
    [
        f"{USER} --fork --pid --mount-proc",
        f"{USER} --fork --pid",
        f"{USER} --fork --pid --mount-proc --uts {RENAMED}",
        f"{USER} --mount {WITHOUT_PROC}",
    ],
    ids=["own /proc", "the outer /proc", "own name", "no /proc"],
)
def test_an_agent_that_hides_its_child_in_a_namespace_allows_nothing(office: Shell, below: str) -> None:
    """From in there no process of a run is seen. Also when the run that tries has a store of its own."""
    office.run("run", "paying.py:payday", "--run-id", "earlier")
    ended = office.run("run", "paying.py:scheming", f"how=below {below}", "--run-id", "scheme")
    assert ended.status == 0, ended.err
    said = (office.folder / "tries.txt").read_text()
    assert "answer-refused" in said, said
    assert "Answer from a shell of the machine itself" in said
    assert office.run("resume", "earlier").status == 4


def _in_container(office: Shell, *lines: str) -> str:
    """Run a few commands in one container, the first of which is its process 1."""
    script = "set -e; " + "; ".join(f"{shlex.join(COMMAND)} {line}" for line in lines)
    command = [*shlex.split(f"{USER} --fork --pid --mount-proc"), "sh", "-c", script]
    done = subprocess.run(command, cwd=office.folder, env=office.environ, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_a_person_in_the_container_of_the_runs_answers(office: Shell) -> None:
    """And in one that was begun anew, once the run was resumed there."""
    asks = "run paying.py:payday --run-id r || test $? = 4"
    assert "answered" in _in_container(office, asks, "answer --run r approve")
    office.run("run", "paying.py:payday", "--run-id", "s")
    refused = _in_container(office, "answer --run s approve")
    assert "began after run s was taken last" in refused, refused
    again = _in_container(office, "resume s || test $? = 4", "answer --run s approve")
    assert "answered" in again, again
    assert office.run("resume", "s").status == 0
