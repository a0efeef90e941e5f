"""An answer comes from outside of every agent's process, and is about what the run asks. Here all in one process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from desk import Desk
from people import ADA, says
from posting import posting
from provider import Provider

from milepost.errors import AnswerRefused, ApprovalNeeded, CorruptRecord
from milepost.notify.channels import Channel
from milepost.notify.message import trial_message
from milepost.notify.sending import send
from milepost.runtime import children
from milepost.stores.memory import MemoryStore


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[Desk]:
    """A desk at which a run has asked whether it may pay."""
    desk = Desk(MemoryStore(), tmp_path)
    asks(desk)
    yield desk
    desk.close()


def asks(desk: Desk) -> None:
    plan = posting(Provider(desk.clock, honours_keys=True), approve="before")
    with pytest.raises(ApprovalNeeded):
        desk.run(plan, "INV-7")


@pytest.fixture
def agents(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let this process be an agent's once it has worked on a run, as processes are outside of tests."""
    monkeypatch.setattr(children, "plays_both", False)
    monkeypatch.setattr(children, "_mark", None)
    yield
    if children._mark is not None and children._mark >= 0:
        os.close(children._mark)


def test_a_process_that_has_worked_on_a_run_answers_nothing_any_more(agents: None, tmp_path: Path) -> None:
    """What it left for its exit is no person."""
    desk = Desk(MemoryStore(), tmp_path)
    asks(desk)
    with pytest.raises(AnswerRefused, match="stays the agent's until it exits"):
        says(desk, ADA, "approve")
    desk.close()


def test_the_process_that_tells_people_by_a_command_answers_nothing_any_more(asking: Desk, agents: None) -> None:
    """Whoever wrote the command down may have been the agent."""
    assert send(Channel("command", command=("true",)), trial_message("2026-11-02T08:00:00.000000+00:00"), 10) == ""
    with pytest.raises(AnswerRefused, match="stays the agent's until it exits"):
        says(asking, ADA, "approve")


def test_a_mark_is_seen_from_other_processes_and_ends_with_the_process(agents: None) -> None:
    assert not children.shows_a_mark(os.getpid())
    children.mark()
    assert children.shows_a_mark(os.getpid())
    assert not children.shows_a_mark(2**22 + 1)  # no process has such a number


def test_a_question_that_the_inbox_shows_in_other_words_takes_no_answer(asking: Desk) -> None:
    """Somebody would approve 1 and have approved 77; the run would refuse it, but the answer would stand."""
    row = asking.question
    assert isinstance(asking.store, MemoryStore)
    asking.store._questions[row.question_id] = replace(row, sentence="Pay 1 EUR?")
    with pytest.raises(CorruptRecord, match="the inbox shows another one than the journal asks"):
        says(asking, ADA, "approve")
