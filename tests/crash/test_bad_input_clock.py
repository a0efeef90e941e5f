"""The wall clock goes back an hour between two starts: order stands, waits stand, and ages are *cannot tell*."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from clock import START, MovableClock

from milepost import Found, Key, NotFound, Retry, effect, step, task
from milepost.errors import MilepostError, OutcomeUnknown, RunWaiting, StepFailed
from milepost.runtime.verify import verify_run
from milepost.stores.sqlite.store import SqliteStore

HOUR = timedelta(hours=1)
sends: list[str] = []
lookups: list[str] = []
tries: list[str] = []


class Busy(Exception):
    retry_after = 600


@step
def first() -> str:
    return "first"


@step(retry=Retry(on=Busy, attempts=9))
def busy() -> str:
    tries.append("busy")
    if len(tries) < 3:
        raise Busy
    return "free"


@task
def waiting() -> list[str]:
    return [first(), busy()]


def _lost(key: Key) -> None:
    sends.append(str(key))
    if len(sends) == 1:
        raise TimeoutError("no answer")


@effect(provider="keeps keys", key_lifetime=timedelta(hours=24))
def kept(key: Key) -> str:
    _lost(key)
    return "kept"


def find(key: Key) -> Found[str] | NotFound:
    lookups.append(str(key))
    return Found("found")


@effect(provider="can be asked", lookup=find, settle=timedelta(minutes=5))
def asked(key: Key) -> str:
    _lost(key)
    return "asked"


@task
def keeping() -> str:
    return kept()


@task
def asking() -> str:
    return asked()


@task
def stopping() -> list[str]:
    found = [first()]
    if not tries:
        tries.append("stopped")
        raise ValueError("stop here")
    return found


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    for each in (sends, lookups, tries):
        each.clear()
    with closing(SqliteStore(tmp_path / "store.sqlite", create=True)) as store:
        yield store


def at(plan: Any, store: SqliteStore, clock: MovableClock, **more: Any) -> Any:
    return plan.options(store=store, clock=clock, **more)


def test_records_keep_their_order_and_their_seals(store: SqliteStore) -> None:
    with pytest.raises(StepFailed):
        at(stopping, store, MovableClock()).run("r")
    assert at(stopping, store, MovableClock(START - HOUR)).resume("r") == ["first"]
    assert all(verdict.ok for verdict in verify_run(store, "r", None, {}))
    times = [json.loads(record.body)["at"] for record in store.records("r")]
    assert times != sorted(times), "the control: the clock did go back"
    durations = [json.loads(record.body).get("duration_s", 0) for record in store.records("r")]
    assert min(durations) >= 0


def test_a_clock_that_goes_back_inside_a_step_gives_no_negative_duration(store: SqliteStore) -> None:
    clock = MovableClock()

    @step
    def goes_back() -> int:
        clock.move(-HOUR)
        return 1

    @task
    def going_back() -> int:
        return goes_back()

    assert at(going_back, store, clock).run("r") == 1
    verified = [json.loads(r.body) for r in store.records("r") if r.kind == "step_verified"]
    assert verified[0].get("duration_s", 0) >= 0


def test_a_recorded_wait_is_neither_reset_nor_shortened(store: SqliteStore) -> None:
    with pytest.raises(RunWaiting) as first_time:
        at(waiting, store, MovableClock(), wait=False).run("r")
    for clock in (MovableClock(START - HOUR), MovableClock(START + timedelta(seconds=599))):
        with pytest.raises(RunWaiting) as later:
            at(waiting, store, clock, wait=False).resume("r")
        assert later.value.until == first_time.value.until
    assert tries == ["busy"]
    early = MovableClock(START - HOUR)
    assert at(waiting, store, early).resume("r") == ["first", "free"]
    assert early.waits[0] == START + timedelta(seconds=600)


def test_the_age_of_a_key_cannot_be_told_so_a_person_is_asked(store: SqliteStore) -> None:
    """By the clock the send lies in the future: whether the provider still keeps the key, nobody knows."""
    with pytest.raises(MilepostError):
        at(keeping, store, MovableClock()).run("r")
    with pytest.raises(OutcomeUnknown, match="age cannot be told"):
        at(keeping, store, MovableClock(START - HOUR)).resume("r")
    assert len(sends) == 1


def test_within_its_lifetime_the_key_is_sent_again(store: SqliteStore) -> None:
    """The control."""
    with pytest.raises(MilepostError):
        at(keeping, store, MovableClock()).run("r")
    assert at(keeping, store, MovableClock(START + HOUR)).resume("r") == "kept"
    assert sends[0] == sends[1]


def test_a_lookup_waits_for_the_whole_settling_time_again(store: SqliteStore) -> None:
    with pytest.raises(MilepostError):
        at(asking, store, MovableClock()).run("r")
    clock = MovableClock(START - HOUR)
    assert at(asking, store, clock).resume("r") == "found"
    assert clock.waits[0] >= START - HOUR + timedelta(minutes=5)
    assert (len(sends), len(lookups)) == (1, 1)
