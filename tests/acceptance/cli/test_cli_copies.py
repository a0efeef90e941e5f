"""A project that was copied on its own machine: one copy at a time goes on with a run, and nothing is sent by both."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from cli_shell import Shell

PLAN = """
import os
from pathlib import Path
from milepost import Key, effect, step, task

@effect(key=lambda n: str(n), provider="neither")
def send(key: Key, n: int) -> int:
    with open(os.environ["SENT"], "a") as sent:
        sent.write(f"{n}\\n")
    return n

@step
def prepare(n: int) -> int:
    if os.environ.get("DIE_AT") == str(n):
        os.kill(os.getpid(), 9)
    if os.environ.get("MEET_AT") == str(n):
        Path(os.environ["REACHED"]).write_text("here")
        Path(os.environ["GO"]).read_text()
    return n

@task
def letters(count: int) -> list[int]:
    return [send(prepare(n)) for n in range(count)]
"""
START = ("run", "plan.py", "count=4", "--run-id", "one", "--plain")


class Place:
    """Two copies of a project, and a process that is stopped in the middle of its run in the first."""

    def __init__(self, shell: Shell) -> None:
        self.shell, self.top = shell, shell.folder
        self.p, self.q = self.top / "p", self.top / "q"
        self.p.mkdir()
        (self.p / "plan.py").write_text(PLAN, encoding="utf-8")
        for name in ("SENT", "REACHED", "GO"):
            shell.environ[name] = str(self.top / name)
        os.mkfifo(self.top / "REACHED")
        os.mkfifo(self.top / "GO")
        shell.folder = self.p

    def copy(self) -> None:
        shutil.copytree(self.p, self.q)

    def meet(self, *words: str) -> subprocess.Popen[str]:
        """Start a command in p and wait until it works on its third letter."""
        self.shell.folder = self.p
        working = self.shell.start(*words, MEET_AT="2")
        assert (self.top / "REACHED").read_text(encoding="utf-8") == "here"
        self.shell.folder = self.q
        return working

    def go(self) -> None:
        (self.top / "GO").write_text("go", encoding="utf-8")

    @property
    def sent(self) -> list[str]:
        return (self.top / "SENT").read_text(encoding="utf-8").split()


@pytest.fixture
def place(shell: Shell) -> Place:
    return Place(shell)


@pytest.fixture
def endings() -> Iterator[ExitStack]:
    """What is started is ended, however the test ends."""
    with ExitStack() as stack:
        yield stack


def kept(working: subprocess.Popen[str], endings: ExitStack) -> subprocess.Popen[str]:
    endings.enter_context(working)
    endings.callback(working.kill)
    return working


@pytest.mark.parametrize("dies", [False, True])
def test_the_second_copy_is_refused_while_the_first_goes_on(place: Place, endings: ExitStack, dies: bool) -> None:
    """And once it is over, or has died, the other one finds by the witness that its store went back."""
    shell = place.shell
    assert shell.run(*START, DIE_AT="2").status == -9
    place.copy()
    first = kept(place.meet("resume", "one", "--plain"), endings)
    for command in (("resume", "one"), ("fork", "one", "--from", "send#2", "--run-id", "two")):
        refused = shell.run(*command)
        assert (refused.status, "run-busy" in refused.err) == (3, True), refused.err
        assert f"process {first.pid}, in another copy of this store: {place.p}/.milepost/store.sqlite" in refused.err
    if dies:
        first.kill()
    else:
        place.go()
    assert first.wait(60) == (-9 if dies else 0)
    asked = shell.run("resume", "one")
    assert (asked.status, "went back" in asked.err) == (4, True), asked.err
    assert place.sent == (["0", "1"] if dies else ["0", "1", "2", "3"])


def test_a_snapshot_by_hard_links_is_refused_to_who_only_looks(place: Place) -> None:
    """And so is the store itself, until the snapshot is removed: to look was enough to roll it back."""
    shell = place.shell
    assert shell.run(*START, DIE_AT="2").status == -9
    shutil.copytree(place.p, place.q, copy_function=os.link)
    for folder in (place.q, place.p):
        shell.folder = folder
        for command in (("runs",), ("show", "one"), ("doctor",), ("resume", "one")):
            refused = shell.run(*command)
            assert (refused.status, refused.out) == (3, "")
            assert "store-linked" in refused.err
            assert "store.sqlite has 2 names (hard links)" in refused.err
    shutil.rmtree(place.q)
    shell.folder = place.p
    assert shell.run("resume", "one").status == 0
    assert place.sent == ["0", "1", "2", "3"]


def test_a_run_that_begins_in_both_copies_begins_in_one(place: Place, endings: ExitStack) -> None:
    shell = place.shell
    assert shell.run("run", "plan.py", "count=0", "--run-id", "none").status == 0
    place.copy()
    first = kept(place.meet(*START), endings)
    refused = shell.run(*START)
    assert (refused.status, "run-busy" in refused.err) == (3, True), refused.err
    place.go()
    assert first.wait(60) == 0
    asked = shell.run(*START)
    assert (asked.status, "went back" in asked.err) == (4, True), asked.err
    assert place.sent == ["0", "1", "2", "3"]
