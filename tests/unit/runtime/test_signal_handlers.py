"""Whose signals they are: ours while a run of the main thread is under way, the program's own before and after."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType

import pytest
from interrupts import Interrupts

from milepost import step, task
from milepost.errors import RunInterrupted
from milepost.runtime.leases import active_runs
from milepost.stores.memory import MemoryStore

WAIT_S = 20
NUMBER = signal.SIGTERM


class Own:
    """The program's own handler of SIGTERM, and what it heard."""

    def __init__(self) -> None:
        self.heard: list[int] = []
        self.handler = self._hear
        self.before = signal.signal(NUMBER, self.handler)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self.heard.append(number)

    def is_back(self) -> bool:
        """Say whether signals are the program's, and heard once."""
        if signal.getsignal(NUMBER) is not self.handler:
            return False
        heard = len(self.heard)
        signal.raise_signal(NUMBER)
        return len(self.heard) == heard + 1


@pytest.fixture
def own() -> Iterator[Own]:
    """Return the program's own handler, which is set."""
    handler = Own()
    yield handler
    signal.signal(NUMBER, handler.before)


@step
def does(what: str) -> str:
    """Do what the test wants done inside a run, in its thread."""
    DEEDS[what]()
    return what


DEEDS: dict[str, Callable[[], object]] = {}


@task
def deed_plan(what: str) -> str:
    """Do something, and reach a boundary after it."""
    does(what)
    return does("nothing")


@pytest.fixture(autouse=True)
def deeds() -> None:
    """Let a test say what is done inside its runs."""
    DEEDS.clear()
    DEEDS["nothing"] = lambda: None


def run(run_id: str, deed: Callable[[], object] = lambda: None) -> type[BaseException] | None:
    """Run the plan in this thread; return what it raised."""
    DEEDS[run_id] = deed
    try:
        deed_plan.options(store=MemoryStore()).run(run_id, run_id)
    except (RunInterrupted, KeyboardInterrupt) as error:
        return type(error)
    return None


class Other:
    """A run of another thread, begun and ended when it is told to."""

    def __init__(self, run_id: str = "other") -> None:
        self.ended: list[type[BaseException] | None] = []
        self._inside, self._gate = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: self.ended.append(run(run_id, self._wait)))

    def _wait(self) -> None:
        self._inside.set()
        assert self._gate.wait(WAIT_S)

    def begin(self) -> None:
        """Come back when it is inside its step."""
        self._thread.start()
        assert self._inside.wait(WAIT_S)

    def end(self) -> None:
        """Come back when it is over."""
        self._gate.set()
        self._thread.join(WAIT_S)


def stop_all(raise_signal: Callable[[int], object] = signal.raise_signal) -> None:
    """Raise the first signal, and come back when every run was told."""
    raise_signal(NUMBER)
    for active in active_runs():
        assert active.bell.wait(lambda: active.stop_signal == NUMBER, WAIT_S)  # noqa: B023 – called here


def test_the_programs_handler_is_back_when_a_run_ended(own: Own) -> None:
    assert run("r") is None
    assert own.is_back()
    assert own.heard == [NUMBER]


@pytest.mark.parametrize("stopped", [False, True], ids=["undisturbed", "stopped"])
@pytest.mark.parametrize("ends", ["inside", "after"])
@pytest.mark.parametrize("begins", ["before", "inside"])
def test_the_programs_handler_is_back_in_whatever_order_runs_of_two_threads_end(
    own: Own, begins: str, ends: str, stopped: bool
) -> None:
    """With the last run of the main thread, also after a first signal, which stops the runs of both."""
    other = Other()

    def inside() -> None:
        if begins == "inside":
            other.begin()
        if stopped:
            stop_all()
        if ends == "inside":
            other.end()

    if begins == "before":
        other.begin()
    outcome = RunInterrupted if stopped else None
    assert run("main", inside) is outcome
    assert own.is_back()
    other.end()
    assert other.ended == [outcome]
    assert own.is_back()
    assert run("next") is None
    assert own.is_back()


def test_another_threads_run_sets_no_handler(own: Own) -> None:
    other = Other()
    other.begin()
    assert own.is_back()
    other.end()
    assert other.ended == [None]


@pytest.mark.parametrize("stopped", [False, True], ids=["undisturbed", "stopped"])
def test_runs_of_one_loop_give_the_handlers_back_with_the_last_of_them(own: Own, stopped: bool) -> None:
    outcomes: list[type[BaseException] | None] = []
    ours: list[bool] = []

    @task
    async def waits(gate: str) -> str:
        await gates[gate].wait()
        return await does.aio("nothing")

    gates: dict[str, asyncio.Event] = {}

    async def one(store: MemoryStore, name: str) -> None:
        try:
            await waits.options(store=store).run(name, name)
            outcomes.append(None)
        except RunInterrupted as error:
            outcomes.append(type(error))

    async def main() -> None:
        gates.update(first=asyncio.Event(), second=asyncio.Event())
        both = [asyncio.ensure_future(one(MemoryStore(), name)) for name in gates]
        while len(active_runs()) < 2:
            await asyncio.sleep(0)
        if stopped:
            stop_all()
        for gate, running in zip(gates.values(), both, strict=True):
            ours.append(signal.getsignal(NUMBER) is not own.handler)
            gate.set()
            await running
        assert own.is_back()

    asyncio.run(main())
    assert ours == [True, True]
    assert outcomes == [RunInterrupted if stopped else None] * 2


@task
def last_deed(what: str) -> str:
    """Do something, and reach no boundary after it."""
    return does(what)


def test_a_signal_too_late_to_stop_the_run_is_the_programs_own(own: Own) -> None:
    """It was taken by the run, which was done; a program that goes on to its next run was then killed, not stopped."""
    DEEDS["last"] = stop_all
    assert last_deed.options(store=MemoryStore()).run("r", "last") == "last"
    assert own.heard == [NUMBER]
    assert own.is_back()


def test_a_late_ctrl_c_is_raised_when_the_result_is_recorded() -> None:
    store = MemoryStore()
    DEEDS["last"] = lambda: signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        last_deed.options(store=store).run("r", "last")
    DEEDS.clear()
    assert last_deed.options(store=store).run("r", "last") == "last"


def test_a_signal_that_stopped_another_runs_plan_is_told_by_that_run(own: Own) -> None:
    """Of two runs of one loop one was over before it heard: the program hears once, of the other."""

    @task
    async def waits() -> str:
        await over.wait()
        return await does.aio("nothing")

    async def main() -> list[str | BaseException]:
        DEEDS["last"] = partial(stop_all, partial(asyncio.get_running_loop().call_soon_threadsafe, signal.raise_signal))
        first = asyncio.ensure_future(waits.options(store=MemoryStore()).run("waits"))
        await asyncio.sleep(0)
        done = await last_async.options(store=MemoryStore()).run("r")
        over.set()
        return [done, *await asyncio.gather(first, return_exceptions=True)]

    @task
    async def last_async() -> str:
        return await does.aio("last")

    over = asyncio.Event()
    done, stopped = asyncio.run(main())
    assert (done, type(stopped)) == ("last", RunInterrupted)
    assert own.heard == []


def test_a_loop_that_hears_signals_itself_hears_a_late_one_once() -> None:
    """asyncio is woken by the signal as it comes, whatever handler is set."""
    heard: list[int] = []
    DEEDS["last"] = lambda: os.kill(os.getpid(), NUMBER)

    @task
    async def last_async() -> str:
        return await does.aio("last")

    async def main() -> str:
        asyncio.get_running_loop().add_signal_handler(NUMBER, heard.append, NUMBER)
        said = await last_async.options(store=MemoryStore()).run("r")
        for _ in range(10):
            await asyncio.sleep(0)
        return said

    assert asyncio.run(main()) == "last"
    assert heard == [NUMBER]


LATE = """
import os, signal
from milepost import step, task
from milepost.stores.memory import MemoryStore

@step
def last() -> int:
    os.kill(os.getpid(), signal.SIGTERM)
    return 1

@task
def plan() -> int:
    return last()

plan.options(store=MemoryStore(), watch=lambda record: print(record.kind, flush=True)).run("r")
print("went on")
"""


def test_a_process_that_was_to_end_ends_when_its_run_is_done() -> None:
    ended = subprocess.run([sys.executable, "-c", LATE], check=False, capture_output=True, text=True)
    assert ended.returncode == -NUMBER
    assert ended.stdout.split()[-1] == "run_ended"


@pytest.mark.parametrize("stopped", [False, True], ids=["undisturbed", "stopped"])
def test_a_handler_that_the_program_sets_meanwhile_stays(own: Own, stopped: bool) -> None:
    def inside() -> None:
        if stopped:
            stop_all()
        signal.signal(NUMBER, newer)

    def newer(number: int, frame: FrameType | None) -> None:
        heard.append(number)

    heard: list[int] = []
    run("r", inside)
    assert signal.getsignal(NUMBER) is newer
    signal.raise_signal(NUMBER)
    assert (heard, own.heard) == ([NUMBER], [])


def test_a_handler_of_ours_that_the_program_kept_passes_on_to_its_own(own: Own) -> None:
    """Put back after the run, called by a handler of its own, and through two runs: never twice, never in a ring."""
    kept: list[Callable[[int, FrameType | None], object]] = []

    def keep() -> None:
        ours = signal.getsignal(NUMBER)
        assert callable(ours)
        kept.append(ours)

    def calling(number: int, frame: FrameType | None) -> None:
        kept[0](number, frame)

    run("first", keep)
    signal.signal(NUMBER, kept[0])
    run("second", keep)
    signal.raise_signal(NUMBER)
    assert own.heard == [NUMBER]
    signal.signal(NUMBER, calling)
    run("third")
    signal.raise_signal(NUMBER)
    assert own.heard == [NUMBER] * 2
    assert signal.getsignal(NUMBER) is calling


def test_a_forked_child_has_the_programs_handlers(own: Own) -> None:
    """Forked inside a run that was stopped, and by another thread than the main one."""
    children: list[int] = []

    def fork() -> None:
        child = os.fork()
        if child == 0:
            os._exit(7 if own.is_back() else 1)
        children.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    def inside() -> None:
        fork()
        thread = threading.Thread(target=fork)
        thread.start()
        thread.join(WAIT_S)
        stop_all()
        fork()

    assert run("r", inside) is RunInterrupted
    assert children == [7, 7, 7]


SECOND = """
import signal
from milepost import step, task
from milepost.stores.memory import MemoryStore

@step
def twice() -> int:
    ours = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, lambda number, frame: ours(number, frame))
    for _ in range(2):
        signal.raise_signal(signal.SIGTERM)
    return 1

@task
def plan() -> int:
    return twice()

plan.options(store=MemoryStore()).run("r")
"""


def test_a_second_signal_ends_the_process_also_through_a_handler_that_calls_ours() -> None:
    assert subprocess.run([sys.executable, "-c", SECOND], check=False).returncode == -NUMBER


def test_ctrl_c_at_any_place_of_a_run_leaves_the_programs_handlers_as_they_were() -> None:
    """It stops the run, is the program's own or comes too late for either; a handler of theirs may raise in ours."""
    interrupts = Interrupts("/milepost/runtime/", "/milepost/api.py", number=signal.SIGINT)
    endings: set[type[BaseException] | None] = set()
    before = {number: signal.getsignal(number) for number in (NUMBER, signal.SIGHUP)}

    def once() -> None:
        theirs = signal.getsignal(signal.SIGINT)
        endings.add(run(f"run {interrupts.count}"))
        assert signal.getsignal(signal.SIGINT) is theirs, interrupts.where
        assert {number: signal.getsignal(number) for number in before} == before, interrupts.where
        assert active_runs() == [], interrupts.where

    while interrupts.once_more(once):
        pass
    assert interrupts.count > 100
    assert endings >= {None, KeyboardInterrupt}
