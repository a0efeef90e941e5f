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
from milepost.runtime import ancestors, children, entitled
from milepost.runtime.leases import me
from milepost.stores.contract import NewRun
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


def test_where_it_cannot_be_told_who_is_above_nobody_answers(asking: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with something else mounted over /proc, or with one that hides what others run."""
    monkeypatch.setattr(ancestors, "_shows_this_process", lambda: False)
    with pytest.raises(AnswerRefused, match="cannot be told") as refused:
        says(asking, ADA, "approve")
    assert "Answer from a shell of the machine itself" in refused.value.hint


@pytest.fixture
def contained(asking: Desk, agents: None, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A desk in a container that is older than its runs."""
    monkeypatch.setattr(entitled, "in_own", lambda namespace: namespace == "pid")
    monkeypatch.setattr(entitled, "began_before", lambda pid, at: pid == 1)
    return asking


def test_a_person_in_a_container_that_is_older_than_the_run_answers(contained: Desk) -> None:
    assert says(contained, ADA, "approve").choice == "approve"


def test_in_a_container_that_the_run_may_have_begun_nobody_answers(
    contained: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entitled, "began_before", lambda pid, at: False)
    with pytest.raises(AnswerRefused, match="began after run r was taken last"):
        says(contained, ADA, "approve")


@pytest.mark.parametrize("host", ["", "another name of this machine"])
def test_in_a_container_nobody_answers_while_a_run_is_held_outside_of_it(contained: Desk, host: str) -> None:
    """It may be above; whatever it calls itself."""
    holder = replace(me(contained.clock), pid=2**22 + 1)
    holder = replace(holder, host=host or holder.host)
    lease = contained.store.create_run(NewRun("agents", "scheming", "agents", None, holder.since, holder))
    assert lease is not None
    with pytest.raises(AnswerRefused, match="run agents is held outside of this container"):
        says(contained, ADA, "approve")
    contained.store.release(lease)
    assert says(contained, ADA, "approve").choice == "approve"


def test_when_a_process_began_is_told_of_those_that_live_here() -> None:
    assert ancestors.began_before(os.getpid(), "2999-01-01T00:00:00+00:00")
    assert not ancestors.began_before(os.getpid(), "2001-01-01T00:00:00+00:00")
    assert not ancestors.began_before(2**22 + 1, "2999-01-01T00:00:00+00:00")  # no process has such a number
    assert not ancestors.began_before(os.getpid(), "no time")


def test_a_question_that_the_inbox_shows_in_other_words_takes_no_answer(asking: Desk) -> None:
    """Somebody would approve 1 and have approved 77; the run would refuse it, but the answer would stand."""
    row = asking.question
    assert isinstance(asking.store, MemoryStore)
    asking.store._questions[row.question_id] = replace(row, sentence="Pay 1 EUR?")
    with pytest.raises(CorruptRecord, match="the inbox shows another one than the journal asks"):
        says(asking, ADA, "approve")
