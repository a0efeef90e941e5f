"""The whole store goes back in time, every seal in it genuine: only the witness notices, and nothing is guessed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from clock import MovableClock
from tampering import KEYS, Scene, ledger, start

from milepost import Applied, CannotTell, Found, Key, NotApplied, NotFound, Retry, effect, task
from milepost.errors import OutcomeUnknown, RunWaiting, StoreWentBack
from milepost.records.identity import Identity
from milepost.runtime.answering import answer_question

RUN = "drip"
AT = "2026-11-02T09:00:00.000000+00:00"


class Stop(Exception):
    """The plan's own, between two effects."""


def _accept(key: Key, drop: int) -> Applied[str]:
    ledger.sends.append(str(drop))
    ref = ledger.accepted.setdefault(str(key), f"ref-{drop}")
    return Applied(ref, ref=ref)


def _find(key: Key, drop: int) -> Found[str] | NotFound | CannotTell:
    ref = ledger.accepted.get(str(key))
    return NotFound() if ref is None else Found(ref, ref=ref)


@effect(key=lambda drop: drop, lookup=_find, settle=timedelta(0), provider="found again")
def looked_up(key: Key, drop: int) -> Applied[str]:
    return _accept(key, drop)


@effect(key=lambda drop: drop, key_lifetime=timedelta(days=1), provider="keeps keys")
def kept(key: Key, drop: int) -> Applied[str]:
    return _accept(key, drop)


@effect(key=lambda drop: drop, provider="neither")
def neither(key: Key, drop: int) -> Applied[str]:
    return _accept(key, drop)


@effect(key=lambda drop: drop, lookup=_find, settle=timedelta(0), retry=Retry(on=NotApplied, attempts=4), provider="no")
def refusing(key: Key, drop: int) -> Applied[str]:
    if drop == 1 and not ledger.mended:
        ledger.sends.append("refused 1")
        raise NotApplied("not yet")
    return _accept(key, drop)


def _drip(send: Callable[[int], str]) -> list[str]:
    received = []
    for drop in range(4):
        if drop == 2 and not ledger.mended:
            raise Stop
        received.append(send(drop))
    return received


@task
def drip_looked_up() -> list[str]:
    return _drip(looked_up)


@task
def drip_kept() -> list[str]:
    return _drip(kept)


@task
def drip_neither() -> list[str]:
    return _drip(neither)


@task
def drip_refusing() -> list[str]:
    return _drip(refusing)


REPORT = [f"ref-{drop}" for drop in range(4)]
STORE = ("store.sqlite", "store.sqlite-wal", "store.sqlite-shm")


@pytest.fixture(params=list(KEYS))
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    ledger.__init__()  # type: ignore[misc]
    scene = Scene(tmp_path / "scene", KEYS[request.param])
    scene.folder.mkdir()
    return scene


def keep_copy(scene: Scene) -> Path:
    backup = scene.folder / "backup"
    backup.mkdir()
    for name in STORE:
        if (scene.folder / name).exists():
            shutil.copy(scene.folder / name, backup / name)
    return backup


def roll_back(scene: Scene, backup: Path) -> None:
    for name in STORE:
        (scene.folder / name).unlink(missing_ok=True)
        if (backup / name).exists():
            shutil.copy(backup / name, scene.folder / name)


def gone_back(scene: Scene, plan: Any) -> None:
    """Run to the middle, keep a copy, run to the end, put the copy back, and have it noticed."""
    start(scene, RUN, plan=plan)
    backup = keep_copy(scene)
    ledger.mended = True
    assert scene.resume(RUN, plan) == REPORT
    roll_back(scene, backup)
    sent = list(ledger.sends)
    assert any("went back" in said for said in scene.complaints(RUN))
    with pytest.raises(StoreWentBack, match="went back in time"):
        scene.resume(RUN, plan)
    assert ledger.sends == sent, "nothing is sent before a person decided"


def answer(scene: Scene, choice: str, **more: Any) -> None:
    with scene.store() as store:
        (asked,) = store.questions(RUN)
        answer_question(store, asked.question_id, choice, seal_key=scene.seal_key, by=Identity("ada"), at=AT, **more)


def test_a_store_that_went_back_asks_until_it_is_answered(scene: Scene) -> None:
    gone_back(scene, drip_looked_up)
    for _ in range(3):
        with pytest.raises(StoreWentBack):
            scene.resume(RUN, drip_looked_up)
    assert len(scene.rows("SELECT 1 FROM questions")) == 1
    answer(scene, "stop")
    with pytest.raises(Exception, match="stopped"):
        scene.resume(RUN, drip_looked_up)
    assert len(ledger.sends) == 4


def test_in_doubt_what_can_be_looked_up_is_found_and_not_sent_again(scene: Scene) -> None:
    gone_back(scene, drip_looked_up)
    answer(scene, "go-on-in-doubt")
    assert scene.resume(RUN, drip_looked_up) == REPORT
    assert ledger.sends == ["0", "1", "2", "3"]
    assert scene.complaints(RUN) == []


def test_in_doubt_what_the_provider_never_got_is_sent(scene: Scene) -> None:
    gone_back(scene, drip_looked_up)
    lost = [key for key, ref in ledger.accepted.items() if ref == "ref-3"]
    del ledger.accepted[lost[0]]  # it was rolled back, too
    answer(scene, "go-on-in-doubt")
    assert scene.resume(RUN, drip_looked_up) == REPORT
    assert ledger.sends == ["0", "1", "2", "3", "3"]


@pytest.mark.parametrize("plan", [drip_neither, drip_kept], ids=["neither", "keeps keys"])
def test_in_doubt_what_cannot_be_looked_up_is_asked_not_sent(scene: Scene, plan: Any) -> None:
    """A key's lifetime counts from the first send, and when that was is what the store forgot."""
    gone_back(scene, plan)
    answer(scene, "go-on-in-doubt")
    for drop in (2, 3):
        with pytest.raises(OutcomeUnknown, match=f"\\[{drop}\\]"):
            scene.resume(RUN, plan)
        assert len(ledger.sends) == 4
        answer(scene, "applied", ref=f"ref-{drop}", result=f'"ref-{drop}"')
    assert scene.resume(RUN, plan) == REPORT
    assert len(ledger.sends) == 4


def test_in_doubt_an_effect_that_was_refused_before_is_looked_up_too(scene: Scene) -> None:
    """Its last record says *rejected*; what was forgotten is the send after it, which was applied."""
    with pytest.raises(RunWaiting):
        scene.run(RUN, drip_refusing)
    assert ledger.sends == ["0", "refused 1"]
    backup = keep_copy(scene)
    ledger.mended = True
    assert scene.resume(RUN, drip_refusing, wait=True, clock=_later()) == REPORT
    roll_back(scene, backup)
    with pytest.raises(StoreWentBack):
        scene.resume(RUN, drip_refusing)
    answer(scene, "go-on-in-doubt")
    sent = list(ledger.sends)
    assert scene.resume(RUN, drip_refusing, wait=True, clock=_later()) == REPORT
    assert ledger.sends == sent


def test_going_back_twice_is_asked_twice(scene: Scene) -> None:
    gone_back(scene, drip_looked_up)
    backup = keep_copy_again(scene)
    answer(scene, "go-on-in-doubt")
    assert scene.resume(RUN, drip_looked_up) == REPORT
    roll_back(scene, backup)
    with pytest.raises(StoreWentBack):
        scene.resume(RUN, drip_looked_up)
    assert len(ledger.sends) == 4


def test_a_run_forgotten_altogether_is_not_started_as_a_new_one(scene: Scene) -> None:
    """The copy is older than the run: its id is free again, but this machine remembers it."""
    start(scene, "before", plan=drip_looked_up)
    backup = keep_copy(scene)
    start(scene, RUN, plan=drip_looked_up)
    roll_back(scene, backup)
    sent = list(ledger.sends)
    with pytest.raises(StoreWentBack):
        scene.run(RUN, drip_looked_up)
    assert ledger.sends == sent


@pytest.mark.parametrize("content", [b"", b"torn", b"\xff" * 84, b"9" * 20, b"0" * 20 + b"zz" * 32])
def test_a_torn_witness_is_none(scene: Scene, content: bytes) -> None:
    """It is not fsynced: a power cut may leave anything. That is no reason to stop a run."""
    start(scene, RUN, plan=drip_looked_up)
    (witness,) = (scene.folder / "state" / "milepost" / "witness").glob("*[!s]")  # not its .copies
    witness.write_bytes(content)
    ledger.mended = True
    assert scene.resume(RUN, drip_looked_up) == REPORT


def test_a_witness_that_cannot_be_kept_stops_nothing(scene: Scene) -> None:
    (scene.folder / "state").write_text("in the way")
    start(scene, RUN, plan=drip_looked_up)
    ledger.mended = True
    assert scene.resume(RUN, drip_looked_up) == REPORT


def test_a_witness_never_accuses_an_honest_store(scene: Scene) -> None:
    """It is written after each commit, so a process that dies between the two leaves it behind, never ahead."""
    start(scene, RUN, plan=drip_looked_up)
    witness = next((scene.folder / "state" / "milepost" / "witness").glob("*[!s]"))
    remembered = [witness.read_bytes()]
    ledger.mended = True
    assert scene.resume(RUN, drip_looked_up) == REPORT
    witness.write_bytes(remembered[0])
    assert scene.complaints(RUN) == []


def keep_copy_again(scene: Scene) -> Path:
    shutil.rmtree(scene.folder / "backup")
    return keep_copy(scene)


def _later() -> MovableClock:
    return MovableClock(datetime.now(UTC) + timedelta(hours=1))
