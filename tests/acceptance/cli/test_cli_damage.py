"""What comes from outside, a damaged store or a file that is no task, is a foreseen error and never a bug of ours."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from cli_shell import Shell

RUN = ("run", "letters.py:letters", 'names=["ann"]', "--run-id", "one")


def edit(shell: Shell, sql: str, *values: object) -> None:
    with closing(sqlite3.connect(shell.folder / ".milepost" / "store.sqlite")) as store, store:
        store.execute(sql, values)


def test_a_row_that_says_done_is_refused_when_the_journal_goes_on(shell: Shell) -> None:
    """The list of runs is a view: a status that the journal does not bear out was written by somebody else."""
    assert shell.run(*RUN, FAIL_PLAN="1").status == 1
    edit(shell, "UPDATE runs SET status = 'done'")
    ended = shell.run("resume", "one")
    assert (ended.status, ended.out) == (3, "")
    assert "corrupt-record: run one: its row" in ended.err


@pytest.mark.parametrize("body", [b"\0", b"[]", b'{"at":1}', b"[" * 100_000], ids=["bytes", "list", "less", "deep"])
@pytest.mark.parametrize("words", [("inbox",), ("answer", "not-applied")], ids=["inbox", "answer"])
def test_a_question_that_cannot_be_read_is_refused_by_name(shell: Shell, words: tuple[str, ...], body: bytes) -> None:
    """The inbox is a row that anyone with the file can write to."""
    shell.run(*RUN, DIE_SHOUTING="1")
    assert shell.run("resume", "one").status == 4
    question = shell.question()
    edit(shell, "UPDATE questions SET body = ?", body)
    ended = shell.run(words[0], question, *words[1:])
    assert ended.status == 3
    assert f"corrupt-record: run one: question {question} cannot be trusted" in ended.err


def test_a_file_that_is_no_python_file_is_misuse(shell: Shell) -> None:
    """A path without its ending is a common slip."""
    (shell.folder / "plan").write_text("x = 1\n")
    ended = shell.run("run", "./plan:x")
    assert ended.status == 2
    assert "expected a file that ends in .py, found plan" in ended.err
