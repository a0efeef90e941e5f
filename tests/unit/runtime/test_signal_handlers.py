"""Whose signals they are: ours while a run of this process is under way, the program's own before and after."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from types import FrameType

import pytest

from milepost import step, task
from milepost.stores.memory import MemoryStore

WAIT_S = 20


@pytest.fixture
def heard() -> Iterator[list[int]]:
    """Return what the program's own handler heard."""
    numbers: list[int] = []

    def own(number: int, frame: FrameType | None) -> None:
        numbers.append(number)

    before = signal.signal(signal.SIGTERM, own)
    yield numbers
    signal.signal(signal.SIGTERM, before)


@step
def one() -> int:
    return 1


@task
def short() -> int:
    return one()


def test_the_programs_handler_is_back_when_a_run_ended(heard: list[int]) -> None:
    own = signal.getsignal(signal.SIGTERM)
    assert short.options(store=MemoryStore()).run("r") == 1
    assert signal.getsignal(signal.SIGTERM) is own
    assert heard == []


def test_a_signal_after_the_last_run_ended_on_another_thread_is_the_programs(heard: list[int]) -> None:
    """Only the main thread can restore handlers; until it comes by, a signal must not be swallowed."""
    own = signal.getsignal(signal.SIGTERM)
    running, gate = threading.Event(), threading.Event()

    @step
    def waits() -> int:
        running.set()
        assert gate.wait(WAIT_S)
        return 1

    @task
    def long() -> int:
        return waits()

    other = threading.Thread(target=long.options(store=MemoryStore()).run, args=("long",))
    other.start()
    assert running.wait(WAIT_S)
    short.options(store=MemoryStore()).run("short")
    gate.set()
    other.join(WAIT_S)
    signal.raise_signal(signal.SIGTERM)
    assert heard == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) is own
