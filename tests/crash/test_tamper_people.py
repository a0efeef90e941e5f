"""Rows beside the journal: with a seal key, answers, requests to cancel and claims are taken from its holders only.

Without one, only what the journal asks is answered, and only what it asks is shown.
"""

from __future__ import annotations

import contextlib
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tampering import KEYS, Scene, ledger, refused, start

from milepost import Key, effect, task
from milepost.errors import (
    AlreadyAnswered,
    CorruptRecord,
    OutcomeUnknown,
    RequestChanged,
    RunEnded,
    RunWaiting,
    SealKeyMissing,
)
from milepost.records.identity import Identity
from milepost.records.rows import AnswerRow, CancelRow
from milepost.runtime.answering import answer_question, ask_to_cancel

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


keyed = pytest.mark.parametrize("scene", ["keyed"], indirect=True)
"""For what only a run with a key can refuse."""


def question(scene: Scene) -> str:
    ((question_id,),) = scene.rows("SELECT question_id FROM questions")
    return str(question_id)


def still_asks(scene: Scene) -> None:
    with pytest.raises(OutcomeUnknown):
        scene.resume(RUN, payday)
    assert ledger.sends == ["100"]


def answer(scene: Scene, choice: str, **more: Any) -> None:
    with scene.store() as store:
        answer_question(store, question(scene), choice, seal_key=scene.seal_key, by=Identity("ada"), at=AT, **more)


def test_an_honest_answer_is_acted_on(scene: Scene) -> None:
    """The control."""
    assert scene.complaints(RUN) == []
    answer(scene, "applied", ref="paid-100", result='"paid-100"')
    assert scene.resume(RUN, payday) == "paid-100"
    assert ledger.sends == ["100"]
    assert scene.complaints(RUN) == []


@pytest.mark.parametrize("choice", ["", "send", "keep", "APPLIED", "not-applied ", "yes", "x" * 100_000])
def test_an_answer_the_question_does_not_offer_is_refused(scene: Scene, choice: str) -> None:
    """Taken for *not applied* it would pay a second time."""
    scene.change(
        "INSERT INTO answers (question_id, choice, by, at, note, place, door, role) "
        "VALUES (?, ?, 'eve', ?, '', 1, '', '')",
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
        "INSERT INTO answers (question_id, choice, by, at, note, place, door, role) "
        "VALUES ('q-forged', 'not-applied', 'eve', ?, '', 1, '', '')",
        AT,
    )
    still_asks(scene)
    assert any("q-forged" in said for said in scene.complaints(RUN))


def test_a_second_answer_marked_as_the_one_that_stands_is_refused_by_the_store(scene: Scene) -> None:
    answer(scene, "stop")
    with pytest.raises(Exception, match="UNIQUE"):
        scene.change(
            "INSERT INTO answers SELECT 9, question_id, 'not-applied', by, at, note, ref, result, 1, seal, "
            "request, door, role FROM answers"
        )


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE questions SET sentence = 'Shall I go on?'",
        "UPDATE questions SET body = CAST(replace(CAST(body AS TEXT), 'never sent again', 'tried later') AS BLOB)",
        "UPDATE questions SET path = 'another'",
        "UPDATE questions SET kind = 'plan_changed'",
        "UPDATE questions SET asked_at = '2020-01-01T00:00:00.000000+00:00'",
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


# ── written by SQL ──────────────────────────────────────────────────────────────────────────────────


def forge_answer(scene: Scene, choice: str, seal: bytes | None = None) -> None:
    scene.change(
        "INSERT INTO answers (question_id, choice, by, at, note, place, door, role, seal) "
        "VALUES (?, ?, 'eve', ?, '', 1, '', '', ?)",
        question(scene),
        choice,
        AT,
        seal,
    )


def refused_for(scene: Scene, row: str, reason: str, **more: Any) -> None:
    """See that the run is refused over this row, that `verify` names it too, and that nothing ran."""
    error = refused(scene, **{"run_id": RUN, "plan": payday, **more})
    assert isinstance(error, CorruptRecord)
    assert row in str(error)
    assert reason in str(error)


def test_an_answer_written_by_sql_counts_only_without_a_key(scene: Scene) -> None:
    """Without a key whoever can write to the file can answer; the journal keeps who and when."""
    forge_answer(scene, "stop")
    if scene.seal_key:
        refused_for(scene, "the answer to q-", "no seal")
        assert any("the answer to q-" in said for said in scene.complaints(RUN))
        return
    with pytest.raises(RunEnded, match="stopped"):
        scene.resume(RUN, payday)
    (body,) = scene.rows("SELECT body FROM journal WHERE kind = 'answer_entered'")[0]
    assert b'"by":"eve"' in body


@keyed
@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE answers SET choice = 'not-applied', ref = NULL, result = NULL",
        "UPDATE answers SET by = 'eve'",
        "UPDATE answers SET at = '2026-11-03T09:00:00.000000+00:00'",
        "UPDATE answers SET note = 'as agreed'",
        "UPDATE answers SET ref = 'paid-999'",
        "UPDATE answers SET ref = NULL",
        "UPDATE answers SET result = CAST('\"paid-999\"' AS BLOB)",
        "UPDATE answers SET place = 2",
        "UPDATE answers SET door = 'console'",
        "UPDATE answers SET role = 'finance'",
        "UPDATE answers SET request = CAST('{}' AS BLOB)",
        "UPDATE answers SET seal = NULL",
        "UPDATE answers SET seal = zeroblob(32)",
        "UPDATE answers SET seal = x''",
    ],
)
def test_an_honest_answer_that_was_changed_is_refused(scene: Scene, edit: str) -> None:
    """Changed to *not applied* it would pay a second time."""
    answer(scene, "applied", ref="paid-100", result='"paid-100"')
    scene.change(edit)
    refused_for(scene, "the answer to q-", "no seal" if "= NULL" in edit and "seal" in edit else "does not fit")
    assert any("the answer to q-" in said for said in scene.complaints(RUN))
    assert ledger.sends == ["100"]


@keyed
def test_a_later_answer_does_not_stand_when_the_first_is_deleted(scene: Scene) -> None:
    """It was sealed as one that does not stand."""
    answer(scene, "stop")
    with pytest.raises(AlreadyAnswered):
        answer(scene, "not-applied")
    scene.change("DELETE FROM answers WHERE place = 1")
    scene.change("UPDATE answers SET place = 1")
    refused_for(scene, "the answer to q-", "does not fit")
    assert ledger.sends == ["100"]


def test_an_answer_is_told_of_a_forged_one_that_stands(scene: Scene) -> None:
    """Told *was answered by eve* somebody might believe it."""
    forge_answer(scene, "not-applied")
    with pytest.raises(CorruptRecord if scene.seal_key else AlreadyAnswered):
        answer(scene, "stop")


@keyed
@pytest.mark.parametrize("key", [None, b"another key, long enough"])
def test_who_does_not_have_the_key_is_told_so_and_writes_nothing(scene: Scene, key: bytes | None) -> None:
    """An answer that could only be refused later is not taken."""
    with scene.store() as store:
        with pytest.raises(SealKeyMissing):
            answer_question(store, question(scene), "stop", seal_key=key, by=Identity("ada"), at=AT)
        with pytest.raises(SealKeyMissing):
            ask_to_cancel(store, RUN, seal_key=key, by="ada", at=AT)
    assert scene.rows("SELECT 1 FROM answers UNION ALL SELECT 1 FROM runs WHERE cancel_at IS NOT NULL") == []


def test_an_honest_request_to_cancel_is_heard(scene: Scene) -> None:
    """The control: the run ends once it is known what became of its payment."""
    with scene.store() as store:
        ask_to_cancel(store, RUN, seal_key=scene.seal_key, by="ada", at=AT, note="wrong month")
    answer(scene, "not-applied")
    with pytest.raises(RunEnded, match="cancelled"):
        scene.resume(RUN, payday)
    assert scene.complaints(RUN) == []


@pytest.mark.parametrize("edit", [None, "cancel_note = 'another'", "cancel_by = 'eve'", "cancel_seal = NULL"])
def test_a_request_to_cancel_written_by_sql_counts_only_without_a_key(scene: Scene, edit: str | None) -> None:
    """Somebody who may only write to the file could else end the month's payments."""
    with scene.store() as store:
        if edit:
            ask_to_cancel(store, RUN, seal_key=scene.seal_key, by="ada", at=AT, note="wrong month")
        else:
            store.cancel(CancelRow(RUN, "eve", AT))
    if edit:
        scene.change(f"UPDATE runs SET {edit} WHERE run_id = ?", RUN)
    answer(scene, "not-applied")
    if scene.seal_key:
        refused_for(scene, "the request to cancel it", "seal")
        assert any("the request to cancel it" in said for said in scene.complaints(RUN))
        return
    with pytest.raises(RunEnded, match="cancelled"):
        scene.resume(RUN, payday)


# ── keys that runs share ────────────────────────────────────────────────────────────────────────────


@effect(key=lambda amount: str(amount), provider="bank", scope="task", key_lifetime=timedelta(hours=24))
def transfer(key: Key, amount: int) -> str:
    ledger.sends.append(str(amount))
    return ledger.accepted.setdefault(str(key), f"paid-{amount}")


@task
def transfers(amount: int) -> str:
    try:
        return transfer(amount)
    except Exception:
        ledger.bodies.append("the plan was told")
        raise


FORGED_CLAIMS = {
    "adopted with another receipt": "UPDATE claims SET ref = 'eve', result = CAST('\"paid-0\"' AS BLOB)",
    "another request": "UPDATE claims SET request_digest = 'f00'",
    "another owner": "UPDATE claims SET run_id = 'nobody'",
    "never applied": "UPDATE claims SET outcome = NULL",
    "no seal": "UPDATE claims SET seal = NULL",
}


@pytest.mark.parametrize("edit", list(FORGED_CLAIMS.values()), ids=list(FORGED_CLAIMS))
def test_a_claim_written_by_sql_counts_only_without_a_key(scene: Scene, edit: str) -> None:
    """A run would else take a payment for made, or make it again. The plan cannot catch it away."""
    ledger.sends.clear()
    assert scene.run("first", transfers, 7) == "paid-7"
    scene.change(edit)
    if scene.seal_key:
        with pytest.raises(CorruptRecord, match=r"the claim of key .* seal"):
            scene.run("second", transfers, 7)
        assert (ledger.sends, ledger.bodies) == (["7"], [])
        with pytest.raises(CorruptRecord, match=r"the claim of key .* seal"):
            scene.resume("second", transfers)
        assert ledger.sends == ["7"]
    else:
        with contextlib.suppress(RequestChanged, RunWaiting):
            scene.run("second", transfers, 7)


def test_an_honest_claim_is_adopted(scene: Scene) -> None:
    """The control."""
    ledger.sends.clear()
    assert scene.run("first", transfers, 7) == "paid-7"
    assert scene.run("second", transfers, 7) == "paid-7"
    assert ledger.sends == ["7"]
    assert scene.complaints("second") == []
