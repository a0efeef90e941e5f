"""An output that waits for its verification or its review is a file on the disk meanwhile: it must stay what it was."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from desk import Desk
from people import ADA, BOB, says

from milepost import Declined, Key, effect, step, task
from milepost.errors import ApprovalNeeded, SourceChanged

LIFETIME = timedelta(days=1)


class Letters:
    """One letter is written, perhaps reviewed, and mailed; what went out is remembered."""

    def __init__(self, letter: Path, **options: Any) -> None:
        self.letter = letter
        self.written, self.mailed = 0, list[str]()

        @step(next="mail it", **options)
        def write(topic: str) -> Path:
            self.written += 1
            letter.write_text(f"good {topic}\n")
            return letter

        @effect(key=lambda path: "k", key_lifetime=LIFETIME)
        def mail(key: Key, path: Path) -> None:
            self.mailed.append(path.read_text())

        @task
        def post(topic: str) -> None:
            mail(write(topic))

        self.post = post


@pytest.fixture
def letter(tmp_path: Path) -> Path:
    return tmp_path / "letter.txt"


def asks(desk: Desk, letters: Letters, match: str = "write passed its checks") -> None:
    with pytest.raises(ApprovalNeeded, match=match):
        desk.run(letters.post, "news")


def test_a_review_shows_what_is_in_the_files(desk: Desk, letter: Path) -> None:
    asks(desk, Letters(letter, review="after"))
    evidence = desk.evidence()
    (shown,) = evidence["request"]["files"]
    assert shown["path"] == str(letter)
    assert len(shown["fingerprint"]) == 64
    assert evidence["files"][0]["content"] == "good news\n"


def test_a_file_that_changed_while_its_review_was_asked_is_a_question(desk: Desk, letter: Path) -> None:
    letters = Letters(letter, review="after")
    asks(desk, letters)
    letter.write_text("bad news\n")
    says(desk, ADA, "approve")
    with pytest.raises(SourceChanged, match=r"letter\.txt changed since write wrote it"):
        desk.resume(letters.post)
    assert (letters.mailed, letter.read_text()) == ([], "bad news\n")


def test_what_is_kept_instead_is_reviewed_anew_and_becomes_the_output(desk: Desk, letter: Path) -> None:
    """Who mends a word in the file before they approve it must not lose it, nor get it out unseen."""
    letters = Letters(letter, review="after")
    asks(desk, letters)
    says(desk, ADA, "approve")
    letter.write_text("better news\n")
    with pytest.raises(SourceChanged):
        desk.resume(letters.post)
    says(desk, BOB, "keep")
    asks(desk, letters, r"the approval by ada@office is void, .*files\[0\]\.fingerprint")
    says(desk, ADA, "approve")
    desk.dies_at_its_end(letters.post, "news")
    letter.unlink()
    desk.resume(letters.post)
    assert (letters.mailed, letters.written, letter.read_text()) == (["better news\n"], 1, "better news\n")


def test_a_decline_is_of_the_content_too(desk: Desk, letter: Path) -> None:
    letters = Letters(letter, review="after")
    asks(desk, letters)
    says(desk, ADA, "decline")
    with pytest.raises(Declined):
        desk.resume(letters.post)
    letter.write_text("better news\n")
    with pytest.raises(SourceChanged):
        desk.resume(letters.post)
    says(desk, BOB, "keep")
    asks(desk, letters, "ada@office declined another one")


@pytest.mark.parametrize("choice", ["keep", "redo"])
def test_a_file_that_changed_while_its_verifier_was_dead_is_a_question(desk: Desk, letter: Path, choice: str) -> None:
    seen: list[str] = []

    def is_read(path: Path) -> bool:
        seen.append(path.read_text())
        return True

    letters = Letters(letter, verify=is_read)
    desk.dies(letters.post, "news", at="verify", phase="before", settled=True)
    letter.write_text("bad news\n")
    with pytest.raises(SourceChanged):
        desk.resume(letters.post)
    says(desk, ADA, choice)
    desk.dies_at_its_end(letters.post, "news")
    desk.resume(letters.post)
    kept = {"keep": ("bad news\n", 1), "redo": ("good news\n", 2)}[choice]
    assert (letters.mailed, letters.written) == ([kept[0]], kept[1])
    assert seen == [kept[0]]


def test_what_was_read_for_an_output_that_waits_is_looked_at_too(desk: Desk, tmp_path: Path) -> None:
    orders = tmp_path / "orders.csv"
    orders.write_text("1\n")

    @step(review="after")
    def count(path: Path) -> int:
        return len(path.read_text().splitlines())

    @task
    def counting() -> int:
        return count(orders)

    with pytest.raises(ApprovalNeeded):
        desk.run(counting)
    says(desk, ADA, "approve")
    orders.write_text("1\n2\n")
    with pytest.raises(SourceChanged, match=r"orders.csv changed since count used it"):
        desk.resume(counting)
    says(desk, ADA, "redo")
    with pytest.raises(ApprovalNeeded):
        desk.resume(counting)
    assert desk.evidence()["output"] == 2


def test_a_file_that_is_gone_while_it_waits_is_put_back(desk: Desk, letter: Path) -> None:
    letters = Letters(letter, review="after")
    asks(desk, letters)
    letter.unlink()
    says(desk, ADA, "approve")
    desk.resume(letters.post)
    assert (letters.mailed, letters.written) == (["good news\n"], 1)
