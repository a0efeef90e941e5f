"""Rows that people write carry no seal: only what the journal asks is answered, and only what it asks is shown."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tampering import KEYS, Scene, ledger, refused, start

from milepost import Key, effect, task
from milepost.errors import CorruptRecord, OutcomeUnknown
from milepost.records.rows import AnswerRow

RUN = "payday"
AT = "2026-11-02T09:00:00.000000+00:00"


@effect(key=lambda amount: str(amount), provider="bank")
def pay(key: Key, amount: int) -> str:
    ledger.sends.append(str(amount))
    ledger.accepted[str(key)] = f"paid-{amount}"
    if len(ledger.sends) == 1:
        raise TimeoutError("no answer")
    return ledger.accepted[str(key)]


@task
def payday(amount: int) -> str:
    return pay(amount)


@pytest.fixture(params=list(KEYS))
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    """A bank that never answered, no way to ask it, and a person who was asked."""
    ledger.__init__()  # type: ignore[misc]
    scene = Scene(tmp_path / "scene", KEYS[request.param])
    scene.folder.mkdir()
    start(scene, RUN, 100, plan=payday)
    with pytest.raises(OutcomeUnknown):
        scene.resume(RUN, payday)
    assert ledger.sends == ["100"]
    return scene


def question(scene: Scene) -> str:
    ((question_id,),) = scene.rows("SELECT question_id FROM questions")
    return str(question_id)


def still_asks(scene: Scene) -> None:
    with pytest.raises(OutcomeUnknown):
        scene.resume(RUN, payday)
    assert ledger.sends == ["100"]


def answer(scene: Scene, choice: str, **more: Any) -> None:
    with scene.store() as store:
        store.answer(AnswerRow(question(scene), RUN, choice, "ada", AT, **more))


def test_an_honest_answer_is_acted_on(scene: Scene) -> None:
    """The control."""
    assert scene.complaints(RUN) == []
    answer(scene, "applied", ref="paid-100", result=b'"paid-100"')
    assert scene.resume(RUN, payday) == "paid-100"
    assert ledger.sends == ["100"]
    assert scene.complaints(RUN) == []


@pytest.mark.parametrize("choice", ["", "send", "keep", "APPLIED", "not-applied ", "yes", "x" * 100_000])
def test_an_answer_the_question_does_not_offer_is_refused(scene: Scene, choice: str) -> None:
    """Taken for *not applied* it would pay a second time."""
    scene.change(
        "INSERT INTO answers (question_id, choice, by, at, note, accepted) VALUES (?, ?, 'eve', ?, '', 1)",
        question(scene),
        choice,
        AT,
    )
    error = refused(scene, run_id=RUN, plan=payday)
    assert isinstance(error, CorruptRecord)
    assert "the answer to q-" in str(error)
    assert len(str(error)) < 1000
    assert ledger.sends == ["100"]


def test_an_answer_to_a_question_the_journal_does_not_ask_does_nothing(scene: Scene) -> None:
    columns = "run, kind, path, sentence, asked_at, body, closed"
    scene.change(f"INSERT INTO questions (question_id, {columns}) SELECT 'q-forged', {columns} FROM questions")
    scene.change(
        "INSERT INTO answers (question_id, choice, by, at, note, accepted) "
        "VALUES ('q-forged', 'not-applied', 'eve', ?, '', 1)",
        AT,
    )
    still_asks(scene)
    assert any("q-forged" in said for said in scene.complaints(RUN))


def test_a_second_answer_marked_as_the_one_that_stands_is_refused_by_the_store(scene: Scene) -> None:
    answer(scene, "stop")
    with pytest.raises(Exception, match="UNIQUE"):
        scene.change(
            "INSERT INTO answers SELECT 9, question_id, 'not-applied', by, at, note, ref, result, 1 FROM answers"
        )


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE questions SET sentence = 'Shall I go on?'",
        "UPDATE questions SET body = CAST(replace(CAST(body AS TEXT), 'never sent again', 'tried later') AS BLOB)",
        "UPDATE questions SET path = 'another'",
        "UPDATE questions SET kind = 'plan_changed'",
        "UPDATE questions SET question_id = 'q-other'",
        "DELETE FROM questions",
    ],
)
@pytest.mark.parametrize("answered", [False, True])
def test_a_question_shown_otherwise_than_it_was_asked_is_refused(scene: Scene, edit: str, answered: bool) -> None:
    """A person who was shown another sentence decided about something else."""
    if answered and ("DELETE" not in edit and "question_id" not in edit):
        answer(scene, "not-applied")
    scene.change(edit)
    assert isinstance(refused(scene, run_id=RUN, plan=payday), CorruptRecord)
    assert scene.complaints(RUN)
    assert ledger.sends == ["100"]


def test_a_question_closed_by_hand_still_stops_the_run(scene: Scene) -> None:
    scene.change("UPDATE questions SET closed = 1")
    still_asks(scene)


def test_the_answer_of_another_run_is_none_of_ours(scene: Scene, tmp_path: Path) -> None:
    """Two runs of the same task ask the same; their questions have names of their own."""
    copy = Scene(tmp_path / "copy", scene.seal_key)
    shutil.copytree(scene.folder, copy.folder)
    ledger.sends.clear()
    start(scene, "other", 100, plan=payday)
    with pytest.raises(OutcomeUnknown):
        scene.resume("other", payday)
    ours, theirs = (row[0] for row in scene.rows("SELECT question_id FROM questions ORDER BY number"))
    assert ours != theirs
    with scene.store() as store, pytest.raises(Exception, match="no question"):
        store.answer(AnswerRow(theirs, RUN, "applied", "ada", AT))


def test_an_answer_written_by_sql_is_entered_under_the_name_it_carries(scene: Scene) -> None:
    """The limit, said plainly: whoever can write to the file can answer. The journal keeps who and when, sealed."""
    scene.change(
        "INSERT INTO answers (question_id, choice, by, at, note, accepted) VALUES (?, 'stop', 'eve', ?, '', 1)",
        question(scene),
        AT,
    )
    with pytest.raises(Exception, match="stopped"):
        scene.resume(RUN, payday)
    (body,) = scene.rows("SELECT body FROM journal WHERE kind = 'answer_entered'")[0]
    assert b'"by":"eve"' in body
