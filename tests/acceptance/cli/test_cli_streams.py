"""Streams that are closed, full or taken away: progress stops no run, a result that is lost is told."""

from __future__ import annotations

import subprocess

import pytest
from cli_shell import COMMAND, Ended, Shell

PLAN = """
import os, sys
from milepost import step, task

@step
def work(how: str) -> str:
    if how == "none":
        sys.stdout = sys.stderr = None
    if how == "closed":
        sys.stdout.close(), sys.stderr.close()
    if how == "descriptors":
        os.close(1), os.close(2)
    return how

@task
def streams(how: str) -> str:
    return work(how)
"""
RUN = ("run", "streams.py", "how=quiet", "--run-id", "one")


def redirected(shell: Shell, where: str, *words: str) -> Ended:
    (shell.folder / "streams.py").write_text(PLAN, encoding="utf-8")
    line = ["sh", "-c", f'exec "$@" {where}', "sh", *COMMAND, *words]
    ended = subprocess.run(line, cwd=shell.folder, env=shell.environ, capture_output=True, text=True, check=False)
    return Ended(ended.returncode, ended.stdout, ended.stderr)


@pytest.mark.parametrize("where", ["2>&-", "2>/dev/full", "<&- 2>&-"])
def test_a_stderr_that_takes_nothing_stops_no_run(shell: Shell, where: str) -> None:
    """Daemons start like that; the result is still the result."""
    ended = redirected(shell, where, *RUN)
    assert (ended.status, ended.out) == (0, "quiet\n")


@pytest.mark.parametrize("where", [">&-", ">/dev/full"])
def test_a_result_that_cannot_be_written_is_told_and_prints_again(shell: Shell, where: str) -> None:
    """The run is done and recorded; only its result went nowhere."""
    ended = redirected(shell, where, *RUN)
    assert ended.status == 6
    assert "unavailable: the result cannot be written to stdout" in ended.err
    assert "Traceback" not in ended.err
    assert shell.run("resume", "one").out == "quiet\n"


@pytest.mark.parametrize("where", [">&-", ">/dev/full"])
@pytest.mark.parametrize("words", [("show", "nobody"), ("run", "nobody.py"), ("show", "--nothing")])
def test_an_error_that_stdout_does_not_take_is_told_without_a_traceback(
    shell: Shell, where: str, words: tuple[str, ...]
) -> None:
    """With --json errors go there, too."""
    ended = redirected(shell, where, *words, "--json")
    assert ended.status == 6
    assert ended.err.startswith("unavailable: the result cannot be written to stdout")
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("words", [("--help",), ("runs",), ("--version",)])
def test_a_full_disk_behind_any_command_is_no_bug_of_ours(shell: Shell, words: tuple[str, ...]) -> None:
    """A page of help to a full disk, too."""
    redirected(shell, "", *RUN)
    ended = redirected(shell, ">/dev/full", *words)
    assert ended.status == 6
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("how", ["none", "closed", "descriptors"])
def test_code_that_takes_the_streams_away_does_not_fail_the_run(shell: Shell, how: str) -> None:
    """What cannot be said about progress is not said; the streams are there again for the result."""
    ended = redirected(shell, "", "run", "streams.py", f"how={how}", "--run-id", "one")
    assert (ended.status, ended.out) == (0, f"{how}\n")
    assert "run one is done" in ended.err


@pytest.mark.parametrize("free", [5, 8, 9, 12])
def test_a_process_without_a_free_descriptor_says_so(shell: Shell, free: int) -> None:
    """An import, a stream and the plan's own file each want one: none of them is a bug of ours, or a failed task."""
    (shell.folder / "streams.py").write_text(PLAN, encoding="utf-8")
    line = ["sh", "-c", f'ulimit -n {free}; exec "$@"', "sh", *COMMAND, *RUN]
    ended = subprocess.run(line, cwd=shell.folder, env=shell.environ, capture_output=True, text=True, check=False)
    assert ended.returncode == 6, ended.stderr
    assert "descriptor" in ended.stderr
    assert "Traceback" not in ended.stderr.partition("no file descriptor")[2]
