"""An edit that names a file is about what lies there when the person answers, not about whatever lies there later."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from desk import Desk
from people import ADA, BOB, says
from provider import Provider

from milepost import Key, Retry, effect, task
from milepost.errors import AnswerRefused, ApprovalNeeded


@pytest.fixture
def provider(desk: Desk) -> Provider:
    return Provider(desk.clock, honours_keys=True)


@pytest.fixture
def letters(tmp_path: Path) -> tuple[Path, Path]:
    """Return the letter of the plan, and the one that a person puts in its place."""
    planned, chosen = tmp_path / "planned.txt", tmp_path / "chosen.txt"
    planned.write_text("planned")
    chosen.write_text("chosen")
    return planned, chosen


def mailing(provider: Provider, letter: Path, **options: Any) -> Any:
    @effect(provider="mail", approve="before", key_lifetime=timedelta(days=1), **options)
    def mail(key: Key, letter: Path, copies: int) -> str:
        return provider.apply(key, [letter.read_text(), copies])

    @task
    def mails() -> str:
        return mail(letter, 1)

    return mails


def edits(desk: Desk, plan: Any, letter: Path, copies: int = 1, paths: Any = None) -> None:
    with pytest.raises(ApprovalNeeded):
        desk.run(plan)
    request = {"letter": str(letter), "copies": copies}
    says(desk, ADA, "edit", request=request, paths=[letter] if paths is None else paths)


@pytest.mark.parametrize("key", [None, b"k" * 32], ids=["plain", "with a key"])
def test_the_file_that_was_named_is_sent(
    desk: Desk, provider: Provider, letters: tuple[Path, Path], key: bytes | None
) -> None:
    desk.seal_key = key
    plan = mailing(provider, letters[0])
    edits(desk, plan, letters[1])
    assert desk.resume(plan) == "receipt-1"
    assert provider.ledger[0][1] == ["chosen", 1]


def test_what_is_written_over_it_after_the_answer_is_asked_about(
    desk: Desk, provider: Provider, letters: tuple[Path, Path]
) -> None:
    """Nobody has seen it; once they have, it is what they allow."""
    plan, chosen = mailing(provider, letters[0]), letters[1]
    edits(desk, plan, chosen)
    chosen.write_text("overwritten")
    with pytest.raises(ApprovalNeeded, match=r"by ada@office is void, .*chosen\.txt has changed since ada@office"):
        desk.resume(plan)
    assert provider.calls == []
    assert desk.evidence()["request"]["arguments"]["letter"] == str(chosen)
    says(desk, BOB, "approve")
    assert desk.resume(plan) == "receipt-1"
    assert provider.ledger[0][1] == ["overwritten", 1]


def test_what_is_written_over_it_while_its_send_waits_is_asked_about(
    desk: Desk, provider: Provider, letters: tuple[Path, Path]
) -> None:
    plan = mailing(provider, letters[0], rejected=ConnectionError, retry=Retry(on=ConnectionError))
    edits(desk, plan, letters[1])
    provider.will_raise(ConnectionError("busy"))
    with pytest.raises(ApprovalNeeded, match=r"chosen\.txt has changed since"):
        desk.resume(plan, waiting=lambda until, reason: letters[1].write_text("overwritten"))
    assert provider.ledger == []


def test_a_file_that_no_door_looked_at_is_asked_about(
    desk: Desk, provider: Provider, letters: tuple[Path, Path]
) -> None:
    """The task could not be imported where the answer was given, or its code kept quiet about the file."""
    plan = mailing(provider, letters[0])
    edits(desk, plan, letters[1], paths=[])
    with pytest.raises(ApprovalNeeded, match=r"chosen\.txt was not looked at when ada@office named it"):
        desk.resume(plan)
    assert provider.calls == []


def test_the_plans_own_file_was_seen_in_the_question(
    desk: Desk, provider: Provider, letters: tuple[Path, Path]
) -> None:
    """Who edits only a number names no new file: nothing is asked again."""
    plan = mailing(provider, letters[0])
    edits(desk, plan, letters[0], copies=2, paths=[])
    desk.resume(plan)
    assert provider.ledger[0][1] == ["planned", 2]


def test_where_several_must_approve_they_hear_that_it_changed(
    desk: Desk, provider: Provider, letters: tuple[Path, Path]
) -> None:
    plan = mailing(provider, letters[0], approvals=2)
    edits(desk, plan, letters[1])
    letters[1].write_text("overwritten")
    with pytest.raises(ApprovalNeeded):
        desk.resume(plan)
    assert any("has changed since" in why for why in desk.evidence()["asked_anew"])


def test_a_file_that_is_not_there_is_refused_at_the_door(
    desk: Desk, provider: Provider, letters: tuple[Path, Path], tmp_path: Path
) -> None:
    plan = mailing(provider, letters[0])
    with pytest.raises(AnswerRefused, match=r"names .*gone\.txt, and there is nothing at"):
        edits(desk, plan, tmp_path / "gone.txt")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(AnswerRefused, match=r"pipe: .*FIFO"):
        says(desk, ADA, "edit", request={"letter": str(tmp_path / "pipe"), "copies": 1}, paths=[tmp_path / "pipe"])
    assert len(desk.questions) == 1
    assert desk.store.answers("r") == []


def test_only_what_the_person_wrote_is_looked_at(desk: Desk, provider: Provider, letters: tuple[Path, Path]) -> None:
    """A task's code, which says what is a path, must not have other files of the approver's read."""
    plan = mailing(provider, letters[0])
    edits(desk, plan, letters[1], paths=[letters[1], Path("/etc/hostname"), Path("/no/such/file")])
    assert b"hostname" not in (desk.store.answers("r")[0].request or b"")
    assert desk.resume(plan) == "receipt-1"
