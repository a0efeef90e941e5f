"""When a body is over: not before what it started, in tasks or in threads, also in threads that were given up."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from branches import WAIT_S, resume, start, verified
from desk import Desk
from meeting import BY, Meeting, OtherError, by_cancel

from milepost import Applied, CannotTell, Found, Key, NotFound, StepFailed, carry, effect, step, task
from milepost.errors import ApprovalNeeded, OutcomeUnknown, RunPaused

pytestmark = pytest.mark.timeout(60)


# ── threads that were given up ──────────────────────────────────────────────────────────────────────


def nothing_there(key: Key, x: int) -> Found[int] | NotFound | CannotTell:
    return NotFound()


@pytest.mark.parametrize("by", BY)
def test_a_send_given_up_lands_late_and_is_recorded_as_such(desk: Desk, by: Any) -> None:
    """A thread cannot be cancelled: the run waits for it, and what it brought is `applied`, never sent again."""
    meeting = Meeting()

    @effect(provider="shop", lookup=nothing_there, settle=timedelta(0))
    def order(key: Key, x: int) -> Applied[int]:
        meeting.ran.append("order")
        meeting.began.set()
        assert meeting.go_on.wait(WAIT_S)
        return Applied(x, ref="no. 7")

    @task
    async def plan() -> str:
        said: str = await by(order.aio(1), meeting)
        meeting.go_on.set()
        return said

    assert start(desk, plan) == "given up"
    unknown, applied = desk.records("outcome_recorded")
    assert (unknown.outcome, applied.outcome, applied.late, applied.ref) == ("unknown", "applied", True, "no. 7")
    assert meeting.ran == ["order"]


def test_a_send_given_up_that_fails_stays_unknown(desk: Desk) -> None:
    """What a late exception says is no proof: the provider is asked, or a person."""
    meeting = Meeting()

    @effect(provider="shop")
    def order(key: Key, x: int) -> int:
        meeting.began.set()
        assert meeting.go_on.wait(WAIT_S)
        raise OtherError

    @task
    async def plan() -> str:
        said = await by_cancel(order.aio(1), meeting)
        meeting.go_on.set()
        return said

    with pytest.raises(OutcomeUnknown):
        start(desk, plan)
    assert [record.outcome for record in desk.records("outcome_recorded")] == ["unknown"]


def test_a_step_given_up_calls_nothing_any_more(desk: Desk) -> None:
    """Its thread runs on, but what it would start now belongs to nobody."""
    meeting = Meeting()

    @step
    def inner(x: int) -> int:
        meeting.ran.append("inner")
        return x

    @step
    def outer(x: int) -> int:
        meeting.began.set()
        assert meeting.go_on.wait(WAIT_S)
        try:
            return inner(x)
        except BaseException as error:
            meeting.ran.append(type(error).__name__)
            raise

    @task
    async def plan() -> str:
        said = await by_cancel(outer.aio(1), meeting)
        meeting.go_on.set()
        return said

    assert start(desk, plan) == "given up"
    assert meeting.ran == ["RunStopping"]
    assert list(verified(desk)) == []


# ── a body waits for what it started ────────────────────────────────────────────────────────────────


def test_a_body_waits_for_tasks_it_did_not_await(desk: Desk) -> None:
    """The outer step is verified after the inner one, though its code did not wait."""
    tasks: list[asyncio.Task[int]] = []

    @step
    async def inner(x: int) -> int:
        for _ in range(20):
            await asyncio.sleep(0)
        return x

    @step
    async def outer(x: int) -> int:
        tasks.append(asyncio.create_task(inner(x)))
        return x

    @task
    async def plan() -> int:
        return await outer(1)

    assert start(desk, plan) == 1
    assert list(verified(desk)) == ["outer/inner", "outer"]


def test_a_body_waits_for_threads_it_did_not_join(desk: Desk) -> None:
    """As for tasks: what is under way when the body returns belongs to it."""
    meeting = Meeting()

    @step
    def inner(x: int) -> int:
        meeting.began.set()
        return x

    @step
    def outer(x: int) -> int:
        threading.Thread(target=carry(inner), args=(x,)).start()
        assert meeting.began.wait(WAIT_S)
        return x

    @task
    def plan() -> int:
        return outer(1)

    assert start(desk, plan) == 1
    first, second = verified(desk)
    assert first.startswith("outer/inner[~")
    assert second == "outer"


@pytest.mark.parametrize("thread", [threading.Thread, lambda target: threading.Timer(0, target)])
def test_a_question_in_a_thread_of_its_own_is_told_by_the_run_alone(desk: Desk, thread: Any) -> None:
    """Python printed our signal with a traceback, though nothing is wrong. What it would print is an error here."""
    went_on = []

    @effect(approve="before", key=lambda x: x)
    def order(key: Key, x: int) -> int:
        return x

    def work() -> None:
        order(1)
        went_on.append(1)

    @task
    def plan() -> None:
        one = thread(target=carry(work))
        one.start()
        one.join()

    with pytest.raises(ApprovalNeeded):
        start(desk, plan)
    assert went_on == []


def test_a_signal_reaches_whoever_waits_for_a_carried_function(desk: Desk) -> None:
    """A pool's future and a thread's own `run` can hear of it: there it stays what ended the function."""
    heard: list[BaseException | None] = []

    @effect(approve="before", key=lambda x: x)
    def order(key: Key, x: int) -> int:
        return x

    class Worker(threading.Thread):
        def run(self) -> None:
            try:
                super().run()
            except RunPaused as raised:
                heard.append(raised)

    @task
    def plan() -> None:
        with ThreadPoolExecutor(1) as pool:
            heard.append(pool.submit(carry(order), 1).exception())
        worker = Worker(target=carry(order), args=(2,))
        worker.start()
        worker.join()

    with pytest.raises(ApprovalNeeded):
        start(desk, plan)
    assert [type(raised) for raised in heard] == [RunPaused, RunPaused]


def test_a_call_after_its_body_ended_is_refused(desk: Desk) -> None:
    """A task that calls a step when its body is verified already: an error there, and no record."""
    late: list[BaseException] = []
    ended = threading.Event()

    @step
    async def inner(x: int) -> int:
        return x

    @step
    async def outer(x: int) -> int:
        async def lingering() -> None:
            while not ended.is_set():
                await asyncio.sleep(0)
            try:
                await inner(x)
            except Exception as error:
                late.append(error)

        tasks.append(asyncio.create_task(lingering()))
        return x

    tasks: list[asyncio.Task[None]] = []

    @task
    async def plan() -> int:
        found = await outer(1)
        ended.set()
        await tasks[0]
        return found

    assert start(desk, plan) == 1
    assert "the body that called it has ended" in str(late[0])
    assert list(verified(desk)) == ["outer"]


def test_an_async_verifier_can_be_cancelled_and_the_body_is_not_repeated(desk: Desk) -> None:
    """The output is kept before it is verified: who gives up on the verifier does not pay for the body again."""
    meeting = Meeting()

    async def slow_check(output: int) -> bool:
        if not meeting.began.is_set():
            meeting.began.set()
            await asyncio.Event().wait()
        return True

    @step(verify=slow_check)
    async def expensive(x: int) -> int:
        meeting.ran.append("expensive")
        return x

    @task
    async def plan() -> str:
        if meeting.began.is_set():
            return f"finished: {await expensive(1)}"
        await by_cancel(expensive(1), meeting)
        raise OtherError

    with pytest.raises(StepFailed, match="OtherError"):
        start(desk, plan)
    assert resume(desk, plan) == "finished: 1"
    assert meeting.ran == ["expensive"]
