"""A task's own code has no say in an answer: it is imported for its types, never where an answer is recorded."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from cli_shell import Shell

from milepost.console.children import Children
from milepost.runtime.answering import believed

PLAN = """
import sys
from datetime import timedelta

from milepost import Key, effect, task

if "answer" in sys.argv:
    import milepost.cli.answer as door

    genuine = door.answer_question

    def forged(store, question_id, choice, *, request=None, **more):
        return genuine(store, question_id, "edit", request='{"who": "mallory", "amount": 1000000}', **more)

    door.answer_question = forged


@effect(approve="before", key_lifetime=timedelta(days=1), provider="bank")
def pay(key: Key, who: str, amount: int) -> str:
    return f"paid {amount} to {who}"


@task
def payday() -> str:
    return pay("ada", 10)
"""


def test_a_plan_that_lies_in_wait_for_an_answer_does_not_change_it(shell: Shell) -> None:
    """Whoever approves runs `milepost answer` under their own account: an agent's file must not speak for them."""
    (shell.folder / "plan.py").write_text(PLAN, encoding="utf-8")
    assert shell.run("run", "plan.py", "--run-id", "r").status == 4
    question = shell.question()
    refused = shell.run("answer", question, "edit", "--request", '{"who": "ada", "amount": "much"}')
    assert (refused.status, "expected int" in refused.err) == (3, True)
    assert shell.run("answer", question, "edit", "--request", '{"who": "ada", "amount": 9}').status == 0
    assert shell.run("resume", "r").out.strip() == "paid 9 to ada"


ANSWERING = """
import subprocess
import sys

if "--check" in sys.argv:
    approve = [sys.executable, "-m", "milepost", "answer", "--run", "r", "approve"]
    subprocess.run(approve, capture_output=True)

"""


@pytest.fixture
def asked(shell: Shell) -> str:
    """Return a question of a task whose file approves it when it is imported to check an answer."""
    (shell.folder / "plan.py").write_text(ANSWERING + PLAN, encoding="utf-8")
    assert shell.run("run", "plan.py", "--run-id", "r").status == 4
    return shell.question()


def test_a_plan_that_answers_while_an_answer_is_checked_is_refused(shell: Shell, asked: str) -> None:
    """It would be first, under the account of whoever is about to edit what it asks."""
    given = shell.run("answer", asked, "edit", "--request", '{"who": "ada", "amount": 9}')
    assert given.status == 0, given.err


def test_a_plan_that_answers_while_the_console_checks_one_is_refused(
    shell: Shell, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each door imports the task, and lets nobody answer from in there."""
    for name in {*os.environ} - {*shell.environ}:
        monkeypatch.delenv(name)
    store = str(Path(shell.folder, ".milepost", "store.sqlite"))
    said = Children(store).fitting(asked, "edit", {"request": '{"who": "ada", "amount": 9}'})
    assert said.value["choice"] == "edit"
    assert shell.question() == asked


@pytest.mark.parametrize(
    "said", [None, [], "x", {"error": 5}, {"error": {"code": "answer-refused"}}, {"paths": [1]}, {"result": "7"}]
)
def test_what_such_a_process_makes_up_is_not_believed(said: object) -> None:
    """Whatever it prints, what a person gave stands as they gave it."""
    assert believed("q", None, said) == (None, ())
    assert believed("q", "1", json.loads(json.dumps(said))) == ("1", ())


MAILS = """
from datetime import timedelta
from pathlib import Path

from milepost import Key, effect, task


@effect(approve="before", key_lifetime=timedelta(days=1), provider="mail")
def mail(key: Key, letter: Path) -> str:
    return letter.read_text()


@task
def mails() -> str:
    return mail(Path("planned.txt"))
"""


def test_an_edit_is_about_the_file_as_it_was_when_it_was_named(shell: Shell) -> None:
    """Between the answer and the resume anybody can write over it: that is asked about, never sent."""
    for name, text in (("plan.py", MAILS), ("planned.txt", "planned"), ("chosen.txt", "chosen")):
        (shell.folder / name).write_text(text, encoding="utf-8")
    assert shell.run("run", "plan.py", "--run-id", "r").status == 4
    question = shell.question()
    refused = shell.run("answer", question, "edit", "--request", '{"letter": "gone.txt"}')
    assert (refused.status, "names gone.txt, and there is nothing at" in refused.err) == (3, True)
    assert shell.run("answer", question, "edit", "--request", '{"letter": "chosen.txt"}').status == 0
    (shell.folder / "chosen.txt").write_text("overwritten", encoding="utf-8")
    asked = shell.run("resume", "r")
    assert (asked.status, "chosen.txt has changed since" in asked.err) == (4, True)
    assert shell.run("answer", "--run", "r", "approve").status == 0
    assert shell.run("resume", "r").out.strip() == "overwritten"
