"""Approvals on the command line, in real processes: killed between answer and effect, two people at once, an agent."""

from __future__ import annotations

import getpass
import platform
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from cli_shell import Ended, Shell

PLAN = Path(__file__).parent / "paying.py"
ME = f"{getpass.getuser()}@{platform.node()}"


@pytest.fixture
def office(shell: Shell) -> Shell:
    """A shell in a folder with the plan."""
    shutil.copy(PLAN, shell.folder)
    return shell


def asks(office: Shell, *words: str, **extra: str) -> Ended:
    ended = office.run("run", "paying.py:payday", "--run-id", "r", *words, **extra)
    assert ended.status == 4, ended.err
    return ended


def paid(office: Shell) -> list[str]:
    book = office.folder / "paid.txt"
    return [line.partition(" ")[2] for line in book.read_text().splitlines()] if book.exists() else []


def test_a_person_is_shown_what_exactly_will_be_sent_and_allows_it(office: Shell) -> None:
    ended = asks(office)
    assert "Pay 10 EUR to ada" in ended.err
    shown = office.run("inbox", office.question()).out
    for words in (
        "Pay 10 EUR to ada",
        "request:",
        "amount: 10",
        "binding:",
        "versions:",
        "1 approval of anybody",
        "edit --request '{",
    ):
        assert words in shown
    assert f"but not of agent:payday@{platform.node()}" in shown
    assert shown.index("request:") < shown.index("binding:")
    found = office.run("inbox", office.question(), "--json").json
    assert found["approval"]["given"] == []
    assert found["evidence"]["request"] == {"arguments": {"amount": 10, "payee": "ada"}}
    assert "asks somebody" in office.run("show", "r").out
    told = office.run("answer", office.question(), "approve", "--note", "fine", "--json").json
    assert (told["by"], told["settled"], told["open"]) == (ME, True, 0)
    assert office.run("resume", "r").status == 0
    assert paid(office) == ["ada 10"]
    assert f"approved by {ME}" in office.run("show", "r").out
    assert office.run("verify", "r").status == 0


@pytest.mark.parametrize(
    "at",
    [
        "append:answer_entered durable 1",
        "append:intent_recorded durable 1",
        "send durable 1",
    ],
)
def test_killed_between_approval_and_effect_it_goes_on_without_asking(office: Shell, at: str) -> None:
    """The answer is consumed by the effect: wherever the process dies, it is paid once and nobody is asked twice."""
    asks(office)
    office.run("answer", office.question(), "approve")
    assert office.run("resume", "r", MILEPOST_CRASH_AT=at).status == -9
    assert office.run("resume", "r").status == 0
    assert paid(office) == ["ada 10"]
    assert office.run("journal", "r", "--json").out.count('"kind": "question_asked"') == 1


def test_two_people_who_answer_at_once_are_two_answers(office: Shell) -> None:
    """One approves, the other declines, at the same moment: one stands, the other is told by whom."""
    asks(office)
    question = office.question()
    with ThreadPoolExecutor(2) as both:
        first = both.submit(office.run, "answer", question, "approve")
        second = both.submit(office.run, "answer", question, "decline")
    statuses = sorted([first.result().status, second.result().status])
    assert statuses == [0, 3]
    told = first.result() if first.result().status else second.result()
    assert f"by {ME}" in told.err
    expected = 1 if first.result().status else 0
    assert office.run("resume", "r").status == expected
    assert paid(office) == ([] if expected else ["ada 10"])


def test_the_same_account_is_one_person(office: Shell) -> None:
    asks(office, APPROVALS="2")
    question = office.question()
    assert "1 of 2: somebody else must approve" in office.run("answer", question, "approve").err
    refused = office.run("answer", question, "approve", USER="boss", LOGNAME="boss")
    assert (refused.status, "somebody else must answer" in refused.err) == (3, True)
    assert "approval, 1 of 2" in office.run("inbox").out
    assert office.run("resume", "r").status == 4
    assert paid(office) == []


def test_a_batch_does_not_say_that_a_run_goes_on_which_waits_for_a_second_approval(office: Shell) -> None:
    asks(office, APPROVALS="2")
    told = office.run("answer", "--run", "r", "approve").err
    assert "run r still asks 1 question, 1 question of them for another approval" in told
    assert "goes on" not in told


@pytest.mark.parametrize("by_run", [False, True])
def test_an_answer_to_a_run_that_is_to_end_says_that_a_resume_ends_it(office: Shell, by_run: bool) -> None:
    asks(office)
    office.run("cancel", "r")
    told = office.run("answer", *(("--run", "r") if by_run else (office.question(),)), "approve").err
    assert "`milepost resume r` ends it." in told


@pytest.mark.parametrize("resumed", [False, True])
def test_who_declines_too_late_is_told_who_decided_and_kept_for_the_audit(office: Shell, resumed: bool) -> None:
    """Named by its run as well as by its id: a decline that is lost in silence looks like one that holds."""
    asks(office)
    office.run("answer", office.question(), "approve")
    if resumed:
        assert office.run("resume", "r").status == 0
    late = office.run("answer", "--run", "r", "decline")
    assert (late.status, f"was answered 'approve' by {ME}" in late.err) == (3, True), late.err
    assert '"choice":"decline"' in office.run("audit", "r", "--format", "jsonl").out


def test_a_decline_of_several_hears_of_those_that_are_decided(office: Shell) -> None:
    office.run("run", "paying.py:shopping", "--run-id", "s")
    office.run("answer", "--run", "s", "--path", "order[gold]", "approve")
    told = office.run("answer", "--run", "s", "decline")
    assert (told.status, "2 questions answered decline" in told.err, "already" in told.err) == (3, True, True)


def test_what_is_only_checked_is_checked_as_when_it_is_given(office: Shell) -> None:
    asks(office)
    question = office.question()
    for request in (
        "nonsense",
        '{"payee": "ada", "amount": NaN}',
        '{"payee": "ada", "amount": 1, "amount": 2}',
    ):
        refused = office.run("answer", question, "edit", "--check", "--request", request)
        assert (refused.status, "not JSON" in refused.err) == (3, True), refused.err
    assert office.run("answer", question, "edit", "--check").status == 3
    assert office.run("answer", question, "approve", "--check", "--ref", "x").status == 3
    assert office.run("answer", question, "nonsense", "--check").status == 3
    fits = office.run("answer", question, "edit", "--check", "--request", '{"payee": "ada", "amount": 9}')
    assert (fits.status, "fits" in fits.err) == (0, True)


def test_a_question_in_other_words_is_neither_shown_nor_answered(office: Shell) -> None:
    """Who can write to the store would otherwise have 77 approved as 1, and only the run would refuse it, later."""
    asks(office)
    question = office.question()
    with closing(sqlite3.connect(office.folder / ".milepost" / "store.sqlite")) as store, store:
        store.execute("update questions set sentence = replace(sentence, '10 EUR', '1 EUR')")
    for words in (
        ("inbox",),
        ("inbox", question),
        ("answer", "--run", "r", "approve"),
    ):
        refused = office.run(*words)
        assert (refused.status, "the inbox shows another one than the journal asks" in refused.err) == (3, True)
        assert "1 EUR" not in refused.out + refused.err
    assert office.run("inbox", "--json").json["refused"][0]["question_id"] == question


def test_only_whom_the_task_names_may_answer(office: Shell) -> None:
    asks(office, APPROVERS="finance-department boss@office")
    refused = office.run("answer", office.question(), "approve")
    assert (refused.status, "finance-department, boss@office may answer" in refused.err) == (3, True)


def test_an_edit_is_checked_when_it_is_given_and_sent_as_it_was_given(office: Shell) -> None:
    asks(office)
    question = office.question()
    for request, why in (
        ('{"payee": "ada"}', "amount"),
        ('{"payee": "ada", "amount": "9"}', "amount"),
        ('{"payee": "eve", "amount": 9}', "it is about 'ada'"),
        ("nonsense", "not JSON"),
    ):
        refused = office.run("answer", question, "edit", "--request", request)
        assert (refused.status, why in refused.err, "stored" in refused.err) == (3, True, False), refused.err
    assert office.run("answer", question, "edit", "--request", '{"payee": "ada", "amount": 9}').status == 0
    assert office.run("resume", "r").status == 0
    assert paid(office) == ["ada 9"]
    assert f"edited by {ME}" in office.run("show", "r").out


def test_several_are_answered_at_once_all_some_or_none(office: Shell) -> None:
    assert office.run("run", "paying.py:shopping", "--run-id", "s").status == 4
    assert len(office.run("inbox", "--json").json["questions"]) == 3
    missed = office.run("answer", "--run", "s", "--path", "post*", "approve")
    assert (missed.status, "No question there offers approve" in missed.err) == (3, True)
    assert missed.err.count("(approval about order[") == 3
    assert "offers approve, edit, decline" in missed.err
    assert "milepost inbox q-" in missed.err
    declined = office.run("answer", "--run", "s", "--path", "order[gold]", "decline", "--json").json
    assert [len(declined["given"]), len(declined["refused"])] == [1, 0]
    assert "2 questions answered approve" in office.run("answer", "--run", "s", "--path", "order*", "approve").err
    ended = office.run("resume", "s", "--json")
    assert ended.json["result"] == ["ordered tea", "left out", "ordered salt"]


def test_who_answers_a_run_hears_of_what_it_asks_not_of_what_is_long_settled(office: Shell) -> None:
    asks(office)
    assert office.run("answer", "--run", "r", "approve").status == 0
    plan = office.folder / "paying.py"
    plan.write_text(plan.read_text("utf-8").replace('pay("ada", amount)', 'pay("robert", amount)'), encoding="utf-8")
    assert office.run("resume", "r").status == 4
    missed = office.run("answer", "--run", "r", "redo")
    assert (missed.status, "No question there offers redo" in missed.err) == (3, True)
    (told,) = [line for line in missed.err.splitlines() if line.startswith("q-")]
    assert (office.question() in told, " offers " in told) == (True, True), missed.err
    late = office.run("answer", "--run", "r", "approve")
    assert "already-answered" not in late.err


def test_a_batch_says_which_were_refused(office: Shell) -> None:
    office.run("run", "paying.py:shopping", "--run-id", "s")
    ids = [q["question_id"] for q in office.run("inbox", "--json").json["questions"]]
    office.run("answer", ids[0], "approve")
    told = office.run("answer", *ids, "approve", "--json")
    assert told.status == 3
    assert [refused["question_id"] for refused in told.json["refused"]] == [ids[0]]
    assert len(told.json["given"]) == 2
    assert office.run("answer", *ids, "edit", "--request", "{}").status == 2
    assert office.run("answer", "approve").status == 2


HOW = ["library", "thread", "command", "bare command", "left behind", "at exit library", "at exit command"]


@pytest.mark.parametrize("how", HOW)
def test_an_agent_does_not_allow_its_own_payments(office: Shell, how: str) -> None:
    """From inside a step, another thread of its process, a child, one with an empty environment, and at its exit."""
    office.run("run", "paying.py:payday", "--run-id", "earlier")
    ended = office.run("run", "paying.py:scheming", f"how={how}", "--run-id", "scheme")
    assert ended.status == 0, ended.err
    said = (office.folder / "tries.txt").read_text()
    assert any(why in said for why in ("must be outside of it", "answer from another one", "answer outside")), said
    assert office.run("resume", "earlier").status == 4
    assert paid(office) == []


def test_who_is_told_is_what_was_set_before_the_run_began(office: Shell) -> None:
    """A step that writes `milepost.toml` would otherwise name the command that answers its own question."""
    ended = office.run("run", "paying.py:telling", "before=[]", "--run-id", "earlier")
    assert (ended.status, "told: command" in ended.err) == (4, False)
    assert not (office.folder / "tries.txt").exists()


@pytest.mark.parametrize("before", ["[]", '["env", "-i"]'])
def test_the_command_that_is_told_does_not_answer(office: Shell, before: str) -> None:
    """Whoever wrote it down: a notification reaches people, and is none. Also with an environment emptied first."""
    office.run("run", "paying.py:telling", f"before={before}", "--run-id", "earlier")
    sent = office.run("notify", "--send")
    assert "answer" in (office.folder / "tries.txt").read_text(), sent.err
    assert office.run("resume", "earlier").status == 4
    assert paid(office) == []


def test_map_says_who_approves(office: Shell) -> None:
    shown = office.run("map", "paying.py:payday", APPROVERS="finance", APPROVALS="2").out
    assert "approval: before it happens 2 of finance" in shown
