"""What a body may raise: whatever it is, it is recorded small and readable, and nothing secret with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from branches import start
from desk import Desk

from milepost import Key, Secret, StepFailed, effect, step, task
from milepost.errors import MilepostError, StoreUnavailable
from milepost.records.model import ERROR_SIZE_MAX
from milepost.stores.contract import Batch, Lease, Ticket
from milepost.stores.memory import MemoryStore

pytestmark = pytest.mark.timeout(60)


def failing(error: Callable[[], BaseException], *, is_async: bool) -> Any:
    def body(x: int) -> int:
        raise error()

    async def body_async(x: int) -> int:
        raise error()

    fails, fails_async = step(name="fails")(body), step(name="fails")(body_async)

    @task(name="plan")
    def plan() -> int:
        return fails(1)

    @task(name="plan")
    async def plan_async() -> int:
        return await fails_async(1)

    return plan_async if is_async else plan


both_kinds = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


@both_kinds
@pytest.mark.parametrize("kind", [KeyboardInterrupt, asyncio.CancelledError])
def test_who_interrupts_or_cancels_sees_what_was_raised(desk: Desk, kind: Any, is_async: bool) -> None:
    """Whoever waits for a cancelled task waits for that; the next reader finds why."""
    with pytest.raises(kind):
        start(desk, failing(kind, is_async=is_async))
    (noted,) = desk.records("step_failed")
    assert noted.error.type.endswith(kind.__name__)
    assert desk.status() == "failed"


class OwnExit(BaseException):
    """A library's own way out."""


no_exceptions = pytest.mark.parametrize("kind", [SystemExit, lambda: SystemExit(0), GeneratorExit, OwnExit])


@both_kinds
@no_exceptions
def test_an_exit_inside_a_step_is_its_failure(desk: Desk, kind: Any, is_async: bool) -> None:
    """A library that calls `sys.exit(0)` ended the program with status 0, as if all were done."""
    with pytest.raises(StepFailed, match=r"fails failed at attempt 1") as failed:
        start(desk, failing(kind, is_async=is_async))
    assert isinstance(failed.value.__cause__, type(kind()))
    assert desk.status() == "failed"


@both_kinds
@no_exceptions
def test_an_exit_between_steps_is_the_plans_failure(desk: Desk, kind: Any, is_async: bool) -> None:
    def leaves() -> int:
        raise kind()

    async def leaves_async() -> int:
        raise kind()

    with pytest.raises(StepFailed, match=r"the plan failed") as failed:
        start(desk, task(name="plan")(leaves_async if is_async else leaves))
    assert isinstance(failed.value.__cause__, type(kind()))
    assert desk.status() == "failed"


@no_exceptions
def test_an_exit_of_an_effect_leaves_its_outcome_unknown(desk: Desk, kind: Any) -> None:
    @effect()
    def post(key: Key) -> None:
        raise kind()

    with pytest.raises(StepFailed, match=r"post failed at attempt 1"):
        start(desk, task(name="plan")(lambda: post()))
    assert [record.outcome for record in desk.records("outcome_recorded")] == ["unknown"]


@both_kinds
@pytest.mark.parametrize("kind", [StopIteration, StopAsyncIteration, RecursionError, MemoryError])
def test_what_python_treats_specially_is_an_ordinary_failure(desk: Desk, kind: Any, is_async: bool) -> None:
    with pytest.raises(StepFailed, match=r"fails failed at attempt 1") as failed:
        start(desk, failing(kind, is_async=is_async))
    assert failed.value.path == "fails"


class RudeError(Exception):
    """Cannot be shown."""

    def __str__(self) -> str:
        raise SystemExit(9)


class UnpicklableError(Exception):
    """Holds what no other process can have."""

    def __init__(self) -> None:
        self.loop = lambda: None
        super().__init__("holds a lambda")


class HugeError(Exception):
    def __str__(self) -> str:
        return "é" * (25 * 2**20)


@both_kinds
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (RudeError, "(its text cannot be read: SystemExit)"),
        (UnpicklableError, "holds a lambda"),
        (HugeError, "é"),
        (lambda: ValueError("\ud800 \x1b[2J"), "ValueError"),
        (lambda: ExceptionGroup("both", [ValueError("a"), TypeError("b")]), "both (2 sub-exceptions)"),
    ],
    ids=["rude", "unpicklable", "huge", "surrogate", "group"],
)
def test_any_exception_can_be_recorded_and_read(desk: Desk, kind: Any, text: str, is_async: bool) -> None:
    """50 MB of text, no text at all, nothing that can be pickled: the record is small and readable."""
    with pytest.raises(MilepostError, match="fails failed"):
        start(desk, failing(kind, is_async=is_async))
    (noted,) = desk.records("step_failed")
    assert text in str(noted.error)
    assert len(str(noted.error).encode()) <= ERROR_SIZE_MAX + 300


def test_an_exception_class_that_is_gone_leaves_a_readable_record(desk: Desk) -> None:
    """Records are data: nothing of the code that wrote them is needed."""

    def gone() -> BaseException:
        return type("GoneError", (Exception,), {"__module__": "gone"})("was here")

    with pytest.raises(StepFailed):
        start(desk, failing(gone, is_async=False))
    (noted,) = desk.records("step_failed")
    assert str(noted.error) == "gone.GoneError: was here"


@both_kinds
def test_a_secret_in_an_exception_is_not_recorded(desk: Desk, monkeypatch: pytest.MonkeyPatch, is_async: bool) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "hunter-2-hunter")

    def leaking() -> BaseException:
        return ValueError(f"login with {Secret('SHOP_PASSWORD').read()} failed")

    with pytest.raises(StepFailed) as failed:
        start(desk, failing(leaking, is_async=is_async))
    assert "hunter" not in str(failed.value)
    assert "[secret SHOP_PASSWORD]" in str(failed.value)
    assert all(b"hunter" not in line.body for line in desk.store.records("r"))


class FullDisk(MemoryStore):
    """Takes nothing any more once `full`, not even a lease back."""

    full = False

    def append(self, batch: Batch) -> Ticket:
        if self.full:
            raise StoreUnavailable(location="here", operation="append", reason="the disk is full")
        return super().append(batch)

    def release(self, lease: Lease) -> None:
        if self.full:
            raise StoreUnavailable(location="here", operation="release lease", reason="the disk is full")
        super().release(lease)


def test_what_is_told_is_the_write_that_failed_first() -> None:
    """That the lease could not be given back either follows from it."""
    store = FullDisk()

    @step
    def fills() -> int:
        store.full = True
        return 1

    with pytest.raises(StoreUnavailable, match="append failed"):
        task(name="plan")(lambda: fills()).options(store=store).run("r")
