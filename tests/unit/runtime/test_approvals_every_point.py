"""A process that dies at any point of a run with approvals: each thing is done once, asked once, and never unasked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from desk import Death, Desk
from people import ADA, BOB, says
from provider import Provider

from milepost import Key, effect, step, task
from milepost.errors import ApprovalNeeded
from milepost.runtime import crash
from milepost.runtime.standing import unanswered
from milepost.stores.memory import MemoryStore

ROUNDS_MAX = 20


def office(provider: Provider, ran: list[str]) -> Any:
    @step(approve="before", review="after", approvals=2)
    def write() -> list[str]:
        ran.append("write")
        return ["tea", "gold"]

    @effect(key=lambda item: item, approve="before", lookup=lambda key, item: provider.find(key), settle=timedelta(0))
    def order(key: Key, item: str) -> str:
        return provider.apply(key, item)

    @task
    def ordering() -> list[str]:
        return order.map(write())

    return ordering


@contextmanager
def dying_at(desk: Desk, number: int, passed: list[str]) -> Iterator[None]:
    """Let the process die at the n-th crash point of any kind that it passes from here on."""

    def reached(label: str, phase: str) -> None:
        passed.append(f"{label} {phase}")
        if len(passed) >= number:
            if len(passed) == number:
                desk.next_process()
            raise Death

    crash.armed = reached
    try:
        yield
    finally:
        crash.armed = None
        if len(passed) >= number:
            desk._forget_what_the_dead_said()


def answer_all(desk: Desk) -> None:
    for row in unanswered(desk.store, "r"):
        for who in (ADA, BOB):
            if row in unanswered(desk.store, "r"):
                says(desk, who, "edit" if row.path == "order[gold]" else "approve", of=row, request=_edited(row.path))


def _edited(path: str) -> Any:
    return {"item": "gold"} if path == "order[gold]" else None


def finish(desk: Desk, plan: Any, number: int) -> tuple[Any, list[str]]:
    """Run to the end, answering what is asked; the n-th point of all kills. Return the result and the points passed."""
    passed: list[str] = []
    for _ in range(ROUNDS_MAX):
        try:
            with dying_at(desk, number, passed) if len(passed) < number else _alive():
                return desk.run(plan), passed
        except ApprovalNeeded:
            answer_all(desk)
        except Death:
            pass
    raise AssertionError("no end")


@contextmanager
def _alive() -> Iterator[None]:
    yield


def one_life(folder: Path, number: int) -> int:
    """Kill one run at the n-th point and judge what came of it; return how many points it passed."""
    desk = Desk(MemoryStore(), folder)
    ran: list[str] = []
    provider = Provider(desk.clock, honours_keys=True)
    found, passed = finish(desk, office(provider, ran), number)
    assert len(found) == 2
    assert Counter(entry[1] for entry in provider.ledger) == {"tea": 1, "gold": 1}, passed[-1]
    asked = Counter((q.path, q.about["when"]) for q in desk.records("question_asked"))
    calls = [
        ("write", "before"),
        ("write", "after"),
        *((f"order[{item}]", "before") for item in ("tea", "gold")),
    ]
    assert asked == dict.fromkeys(calls, 1), passed[-1]
    entered: set[str] = set()
    for record in desk.records("answer_entered", "intent_recorded"):
        if record.kind == "answer_entered":
            entered.add(record.question_id)
        else:
            assert record.answer in entered, passed[-1]
    desk.close()
    return len(passed)


def test_wherever_it_dies_nothing_is_asked_twice_and_nothing_is_done_unasked(tmp_path: Path) -> None:
    """The body of the reviewed step may run twice, as of any step whose process died before its output was kept."""
    total = one_life(tmp_path / "whole", 10**9)
    assert total > 50
    for number in range(1, total + 1):
        one_life(tmp_path / str(number), number)


@pytest.mark.parametrize("point", ["append:question_asked", "append:answer_entered", "append:intent_recorded", "send"])
def test_the_points_that_matter_are_among_them(tmp_path: Path, point: str) -> None:
    desk = Desk(MemoryStore(), tmp_path)
    _, passed = finish(desk, office(Provider(desk.clock), []), 10**9)
    assert any(label.startswith(point) for label in passed)
    desk.close()
