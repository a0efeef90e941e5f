"""Starts that a resume does not read, since their checkpoints say it all: nobody can tell the difference."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import fields
from datetime import timedelta
from typing import Any

import pytest
from desk import Desk
from provider import Provider

from milepost import Key, Retry, effect, step, task
from milepost.errors import CorruptRecord, SourceChanged, StepFailed
from milepost.protocol.snapshot import Snapshot
from milepost.protocol.state import StepState
from milepost.runtime import opening
from milepost.runtime.opening import read_snapshot
from milepost.stores.contract import Store, StoredRecord
from milepost.stores.memory import MemoryStore

ONLY_OF_STARTS = {"first_started_at", "started_with", "unread_start"}
"""What a step that is finished is not asked for; its inputs are compared as they are asked for."""


def a_full_run(desk: Desk) -> Any:
    """Leave a run with everything a chain can hold between a start and its checkpoint, and with nothing between."""
    provider, tries = Provider(desk.clock), [0]

    @step
    def plain(number: int) -> int:
        return number

    @step(verify=lambda output: output > 0)
    def checked(number: int) -> int:
        return number

    @step(retry=Retry(on=ConnectionError, attempts=3, first_wait=timedelta(seconds=1)))
    def shaky() -> int:
        tries[0] += 1
        if tries[0] == 1:
            raise ConnectionError
        return tries[0]

    @step
    def outer(number: int) -> int:
        return plain(number) + plain(number + 1)

    @effect(provider="accounting")
    def post(key: Key, number: int) -> Any:
        return provider.apply(key, [number])

    @step
    def unfinished() -> int:
        plain(7)
        plain(8)
        raise ValueError("stop here")

    @task
    def whole(first: int = 1) -> int:
        plain(first)
        checked(2)
        shaky()
        outer(3)
        plain.map([4, 5], concurrency=2)
        post(6)
        plain(9)
        return unfinished()

    with pytest.raises(StepFailed):
        desk.run(whole)
    with pytest.raises(StepFailed):
        desk.resume(whole)
    return whole


def read_fully(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Snapshot:
    with monkeypatch.context() as patched:
        patched.setattr(opening, "fold_start_unread", lambda *_: False)
        return read_snapshot(desk.store, "r", None).snapshot


def of_step(state: StepState) -> dict[str, Any]:
    told = {f.name: getattr(state, f.name) for f in fields(state) if f.name not in ONLY_OF_STARTS}
    return {**told, "inputs": state.inputs}


def test_a_journal_says_the_same_with_and_without_them(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    a_full_run(desk)
    found, expected = desk.snapshot(), read_fully(desk, monkeypatch)
    assert list(found.steps) == list(expected.steps)
    assert {p: of_step(s) for p, s in found.steps.items()} == {p: of_step(s) for p, s in expected.steps.items()}
    others = [f.name for f in fields(Snapshot) if f.name not in ("steps", "used", "has_run")]
    assert {name: getattr(found, name) for name in others} == {name: getattr(expected, name) for name in others}


def test_some_are_not_read(desk: Desk) -> None:
    """Else the test above would prove nothing."""
    stops_between_steps(desk)
    assert len(read_snapshot(desk.store, "r", None).unread) == 2
    assert all(state.unread_start is not None and state.inputs is not None for state in desk.snapshot().steps.values())


def stops_between_steps(desk: Desk) -> Callable[[int], Any]:
    @step
    def read(number: int) -> int:
        return number

    @task
    def plan() -> int:
        read(numbers[0])
        read(2)
        raise ValueError("stop here")

    numbers = [1]
    with pytest.raises(StepFailed):
        desk.run(plan)

    def resumed(number: int) -> Any:
        numbers[0] = number
        return desk.resume(plan)

    return resumed


def test_what_was_given_before_is_shown_where_it_differs_now(desk: Desk) -> None:
    """The only thing that a start alone knows."""
    resumed = stops_between_steps(desk)
    with pytest.raises(SourceChanged, match="finished with other inputs"):
        resumed(5)
    assert "1 → 5" in str(desk.evidence()["changes"])


def change(store: Store, line: StoredRecord, body: bytes) -> None:
    if isinstance(store, MemoryStore):
        store._runs["r"].records[line.seq - 1] = line._replace(body=body)
        return
    with closing(sqlite3.connect(store.location)) as connection, connection:
        connection.execute("UPDATE journal SET body = ? WHERE seq = ?", (body, line.seq))


def test_the_seal_of_one_is_checked_all_the_same(desk: Desk) -> None:
    """Not read is not unchecked: a byte of it that was changed is refused before anything runs."""
    resumed = stops_between_steps(desk)
    line = next(line for line in desk.store.records("r") if line.kind == "step_started")
    change(desk.store, line, line.body.replace(b'"attempt":1', b'"attempt":2'))
    with pytest.raises(CorruptRecord, match="step_started"):
        resumed(1)
