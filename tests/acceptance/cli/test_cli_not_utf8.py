"""Bytes that are no UTF-8, wherever a text comes in: one message, nothing written, no bug of ours, no failed plan."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from cli_shell import COMMAND, Ended, Shell

PLAN = "from milepost import task\n@task\ndef plan() -> int:\n    return 1\n"
ODD = os.fsdecode(b"a\xe9")
ODD_KEY = os.fsdecode(b"\xffx" * 20)


def called(shell: Shell, *words: str, folder: Path | None = None, **environ: str) -> Ended:
    ended = subprocess.run(
        [*COMMAND, *words],
        cwd=folder or shell.folder,
        env={**shell.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def refused(ended: Ended, code: str) -> None:
    assert any(line.startswith(f"{code}: ") for line in ended.err.splitlines()), ended.err
    assert ended.status == 2
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    "words",
    [
        ["show", ODD],
        ["journal", ODD],
        ["verify", ODD],
        ["brief", ODD],
        ["cancel", ODD],
        ["cancel", "one", "--note", ODD],
        ["resume", ODD],
        ["fork", ODD, "--from", "step"],
        ["fork", "one", "--from", ODD],
        ["audit", ODD],
        ["inbox", ODD],
        ["permissions", ODD],
        ["permissions", "--task", ODD],
        ["answer", "--run", ODD, "yes"],
        ["answer", "question", ODD],
        ["prune", ODD],
        ["runs", "--task", ODD],
        ["map", f"{ODD}.py"],
        ["run", f"{ODD}.py"],
        ["run", "plan.py", f"x={ODD}"],
        ["run", "plan.py", "--run-id", ODD],
        ["shadow", "report", ODD],
        ["promote", ODD],
    ],
    ids=lambda words: " ".join(words).encode("ascii", "backslashreplace").decode(),
)
def test_what_is_typed(shell: Shell, words: list[str]) -> None:
    (shell.folder / "plan.py").write_text(PLAN, encoding="utf-8")
    refused(called(shell, *words), "bad-name")
    assert not (shell.folder / ".milepost").exists()


@pytest.mark.parametrize("variable", ["MILEPOST_SEAL_KEY", "MILEPOST_AGENT"])
@pytest.mark.parametrize("words", [("run", "plan.py"), ("resume", "one")], ids=["run", "resume"])
def test_what_the_environment_says(shell: Shell, variable: str, words: tuple[str, ...]) -> None:
    (shell.folder / "plan.py").write_text(PLAN.replace("1", "1 // 0"), encoding="utf-8")
    if words[0] == "resume":
        called(shell, "run", "plan.py", "--run-id", "one")
    ended = called(shell, *words, **{variable: ODD_KEY})
    refused(ended, "bad-option")
    assert f"bad-option: {variable}: it holds bytes that are not UTF-8" in ended.err
    assert "xff" not in ended.err
    assert (shell.folder / ".milepost").exists() == (words[0] == "resume")


def test_the_folder_of_a_start(shell: Shell) -> None:
    folder = shell.folder / ODD
    folder.mkdir()
    (folder / "plan.py").write_text(PLAN, encoding="utf-8")
    refused(called(shell, "run", "plan.py", folder=folder), "bad-name")
    refused(called(shell, "run", "--run-id", "one", f"{shell.folder}/plan.py", folder=folder), "unknown-task")
    (shell.folder / "plan.py").write_text(PLAN, encoding="utf-8")
    refused(called(shell, "run", "--run-id", "one", f"{shell.folder}/plan.py", folder=folder), "bad-name")
    assert not (folder / ".milepost").exists()
