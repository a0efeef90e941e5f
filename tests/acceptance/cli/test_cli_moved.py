"""A project that was moved or renamed with its store goes on where it is now, and says so."""

from __future__ import annotations

import shutil
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


def copied(shell: Shell, project: Path) -> Path:
    """Copy the project, with another plan than the original has by then; stand in the copy."""
    copy = project.with_name("copy")
    shutil.copytree(project, copy)
    for folder in (project, copy):
        text = PLAN.replace("return text", f'Path("ended.txt").write_text("{folder.name}"); return text')
        (folder / "plan.py").write_text(text, encoding="utf-8")
    shell.folder = copy
    return copy


def ended_in(top: Path) -> dict[str, str]:
    """Return the folders in which the run ended, each with the plan that it followed."""
    return {str(path.parent.relative_to(top)): path.read_text(encoding="utf-8") for path in top.rglob("ended.txt")}


@pytest.mark.parametrize("words", [(), ("--task", "plan.py:moved")])
def test_a_copied_project_goes_on_in_the_copy(shell: Shell, project: Path, words: tuple[str, ...]) -> None:
    """What lies beside the store that was found is meant, although the original is still there; and that is said."""
    copy = copied(shell, project)
    assert str(copy / "data") in shell.run("resume", "one", *words, "--check").err
    ended = shell.run("resume", "one", *words)
    assert (ended.status, ended.out) == (0, "figures\n"), ended.err
    assert f"with another copy of its store; going on in {copy / 'data'}" in ended.err
    assert ended_in(project.parent) == {"copy/data": "copy"}


def test_a_copy_whose_original_has_no_store_any_more_goes_on_in_the_copy(shell: Shell, project: Path) -> None:
    copied(shell, project)
    shutil.rmtree(project / ".milepost")
    assert shell.run("resume", "one").status == 0
    assert ended_in(project.parent) == {"copy/data": "copy"}


def test_a_store_that_is_named_goes_on_in_the_recorded_folder(shell: Shell, project: Path) -> None:
    """It may lie anywhere. So may one that lay beside nothing of the run."""
    copy = copied(shell, project)
    shell.folder = project
    ended = shell.run("resume", "one", MILEPOST_STORE=str(copy / ".milepost" / "store.sqlite"))
    assert (ended.status, "copy of its store" in ended.err) == (0, False)
    assert ended_in(project.parent) == {"before/data": "before"}


def test_a_store_alone_that_was_copied_asks_where_the_task_is(shell: Shell, project: Path) -> None:
    """To run the original's file beside the copy would be neither of both."""
    copy = copied(shell, project)
    (copy / "plan.py").unlink()
    refused = shell.run("resume", "one")
    assert refused.status == 2
    assert f"its file was not copied with the store: there is no {copy / 'plan.py'}" in refused.err
    assert "`milepost resume one --task FILE.py:moved`" in refused.err
    assert ended_in(project.parent) == {}


def test_all_takes_no_task(shell: Shell, project: Path) -> None:
    """Several runs may have several tasks."""
    assert shell.run("resume", "--all", "--task", "plan.py:moved").status == 2


SHADOWED = """
import os
from pathlib import Path
from milepost import step, task

@step
def written() -> str:
    if os.environ.get("FAIL"):
        raise RuntimeError("not yet")
    Path("own.txt").write_text("mine")
    if "ELSEWHERE" in os.environ:
        Path(os.environ["ELSEWHERE"]).write_text("others work here")
    return "written"

@task
def shadowed() -> str:
    return written()
"""


@pytest.mark.parametrize("reaches_back", [False, True])
def test_a_copied_shadow_run_changes_the_copy_and_not_where_it_began(shell: Shell, reaches_back: bool) -> None:
    """The folder on record is the original project: others work there, nothing is to change in it."""
    began, copy = shell.folder / "began", shell.folder / "copy"
    for folder in (began, shell.folder / "temporary"):
        folder.mkdir()
    shell.environ["TMPDIR"] = str(shell.folder / "temporary")  # which a shadow run may write to
    (began / "plan.py").write_text(SHADOWED, encoding="utf-8")
    shell.environ["MILEPOST_STORE"] = str(began / ".milepost" / "store.sqlite")
    shell.folder = began
    assert shell.run("run", "--shadow", "plan.py", "--run-id", "one", FAIL="1").status == 1
    del shell.environ["MILEPOST_STORE"]
    shutil.copytree(began, copy)
    shell.folder = copy
    if reaches_back:
        shell.environ["ELSEWHERE"] = str(began / "theirs.txt")
    ended = shell.run("resume", "one")
    assert ended.status == (2 if reaches_back else 0), ended.err
    assert (copy / "own.txt").read_text() == "mine"
    assert not (began / "theirs.txt").exists()
