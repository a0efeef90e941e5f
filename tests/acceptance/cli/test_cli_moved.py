"""A project that was moved or renamed with its store goes on where it is now, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_shell import Shell

PLAN = """
import os
from pathlib import Path
from milepost import step, task

@step
def read(report: Path) -> str:
    Path("read.txt").write_text("once")
    return report.read_text()

@step
def end(text: str) -> str:
    if os.environ.get("FAIL"):
        raise RuntimeError("not yet")
    return text

@task
def moved(report: Path) -> str:
    return end(read(report))
"""


@pytest.fixture
def project(shell: Shell) -> Path:
    """A project whose run failed half way; it was started in a folder below the store's."""
    folder = shell.folder / "before"
    (folder / "data").mkdir(parents=True)
    (folder / "plan.py").write_text(PLAN, encoding="utf-8")
    (folder / "data" / "report.txt").write_text("figures", encoding="utf-8")
    shell.environ["MILEPOST_STORE"] = str(folder / ".milepost" / "store.sqlite")
    shell.folder = folder / "data"
    assert shell.run("run", "../plan.py", "report=report.txt", "--run-id", "one", FAIL="1").status == 1
    del shell.environ["MILEPOST_STORE"]
    return folder


def moved(shell: Shell, project: Path) -> Path:
    after = project.with_name("after")
    project.rename(after)
    shell.folder = after
    return after


@pytest.mark.parametrize("words", [("one",), ("one", "--task", "plan.py:moved")])
def test_a_moved_project_goes_on_where_it_is_now(shell: Shell, project: Path, words: tuple[str, ...]) -> None:
    """The file beside the store is taken, in the folder of the run as it is called now; nothing is done twice."""
    after = moved(shell, project)
    (after / "data" / "read.txt").unlink()
    if "--task" in words:
        shell.folder = after / "data"
        words = ("one", "--task", "../plan.py:moved")
    ended = shell.run("resume", *words)
    assert (ended.status, ended.out) == (0, "figures\n"), ended.err
    assert not (after / "data" / "read.txt").exists()
    assert str(after) in ended.err


def test_a_check_of_a_moved_project_finds_the_task_too(shell: Shell, project: Path) -> None:
    """What a check says and what a resume does are the same."""
    after = moved(shell, project)
    ended = shell.run("resume", "one", "--check")
    assert ended.status == 0, ended.err
    assert f"going on with {after / 'plan.py'}:moved" in ended.err


def test_a_task_that_is_nowhere_is_named_by_the_hint_s_command(shell: Shell, project: Path) -> None:
    """The hint can be typed."""
    after = moved(shell, project)
    (after / "plan.py").rename(after / "renamed.py")
    ended = shell.run("resume", "one")
    assert ended.status == 2
    assert "`milepost resume one --task FILE.py:moved`" in ended.err
    assert "The folder of the run" not in ended.err
    shell.folder = after / "data"
    assert shell.run("resume", "one", "--task", "../renamed.py:moved").out == "figures\n"


def test_all_takes_no_task(shell: Shell, project: Path) -> None:
    """Several runs may have several tasks."""
    assert shell.run("resume", "--all", "--task", "plan.py:moved").status == 2
