"""Who belongs to a run and who does not: threads, executors, loops, child processes; and steps without any run."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from branches import WAIT_S, start, verified
from desk import Desk

import milepost
from milepost import Applied, Key, effect, heartbeat, last_heartbeat, spent, step, task
from milepost.errors import BlocksLoop, OutsideRun, StepFailed

pytestmark = pytest.mark.timeout(60)


@step
def match(x: int) -> int:
    """Compare."""
    return x * 2


@step
async def match_async(x: int) -> int:
    return x * 2


@effect(key=lambda x: x)
def post(key: Key, x: int) -> int:
    return x


@effect(key=lambda x: x)
async def post_async(key: Key, x: int) -> Applied[int]:
    return Applied(x, ref="7")


# ── without any run ─────────────────────────────────────────────────────────────────────────────────


def test_a_step_without_a_run_is_the_plain_function() -> None:
    """Unit tests of steps need no store."""
    assert match(2) == 4
    assert match.map([1, 2], concurrency=2) == [2, 4]
    assert asyncio.run(match.aio(2)) == 4
    assert asyncio.run(match_async(2)) == 4
    assert match.__name__ == "match"
    assert match.__doc__ == "Compare."


def test_a_mapped_async_step_without_a_run_is_the_plain_function() -> None:
    async def program() -> list[int]:
        return await match_async.map([1, 2])

    assert asyncio.run(program()) == [2, 4]


@pytest.mark.parametrize("call", [lambda: post(1), lambda: post.map([1]), lambda: post.aio(1), lambda: post_async(1)])
def test_an_effect_without_a_run_is_refused(call: Any) -> None:
    with pytest.raises(OutsideRun, match="an effect needs a run that records it"):
        call()


def test_an_effect_can_be_called_on_purpose() -> None:
    assert post.plain(Key("t"), 3) == 3
    assert asyncio.run(post_async.plain(Key("t"), 3)) == 3


def test_what_a_body_says_is_heard_by_nobody_without_a_run() -> None:
    heartbeat(1, 2, "half", cursor={"page": 1})
    spent(input_tokens=1)
    assert last_heartbeat() is None


@pytest.mark.parametrize(
    "call", [milepost.current_run, lambda: milepost.sleep(1), lambda: milepost.sleep.aio(timedelta(1))]
)
def test_what_needs_a_run_is_refused_without_one(call: Any) -> None:
    with pytest.raises(OutsideRun):
        call()


def test_a_task_called_plainly_runs_its_steps_plainly() -> None:
    @task
    def plan(x: int) -> int:
        return match(x)

    assert plan(2) == 4


# ── threads that were not given the run ─────────────────────────────────────────────────────────────


def test_a_pool_without_carry_is_refused(desk: Desk) -> None:
    """Run plainly, its step would be paid for again on every resume, in silence."""

    @task
    def plan() -> int:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(match, 1).result()

    with pytest.raises(OutsideRun, match=r"this thread does not belong to it"):
        start(desk, plan)


def test_a_loops_executor_without_carry_is_refused(desk: Desk) -> None:
    @task
    async def plan() -> int:
        return await asyncio.get_running_loop().run_in_executor(None, match, 1)

    with pytest.raises(OutsideRun, match=r"milepost.carry|does not belong"):
        start(desk, plan)


def test_a_bare_thread_is_refused_effects_too(desk: Desk) -> None:
    found: list[Exception] = []

    def stranger() -> None:
        for call in (match, post):
            try:
                call(1)
            except Exception as error:
                found.append(error)

    @task
    def plan() -> int:
        thread = threading.Thread(target=stranger)
        thread.start()
        thread.join(WAIT_S)
        return match(2)

    assert start(desk, plan) == 4
    assert [type(error) for error in found] == [OutsideRun, OutsideRun]
    assert list(verified(desk)) == ["match"]


# ── loops ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        (lambda: match(1), "await match.aio("),
        (lambda: match.map([1]), "await asyncio.to_thread(match.map, "),
        (lambda: post(1), "await post.aio("),
        (lambda: post.map([1]), "await asyncio.to_thread(post.map, "),
        (lambda: milepost.sleep(0), "await milepost.sleep.aio("),
    ],
)
def test_a_synchronous_call_on_a_running_loop_is_refused(desk: Desk, call: Any, instead: str) -> None:
    """The hint is what works: `.aio` sends one, it takes no items."""

    @task
    async def plan() -> None:
        call()

    with pytest.raises(BlocksLoop) as refused:
        start(desk, plan)
    assert instead in str(refused.value.hint)


def test_a_synchronous_map_works_in_a_thread_of_an_asynchronous_task(desk: Desk) -> None:
    """What the hint says: each item under its own name, and what is there already is not sent again."""

    @task
    async def plan() -> list[list[int]]:
        matched = await asyncio.to_thread(match.map, [1, 2], concurrency=2)
        return [matched, await asyncio.to_thread(post.map, [1, 2], concurrency=2)]

    assert start(desk, plan) == start(desk, plan)


def test_a_callback_of_the_loop_blocks_it_too(desk: Desk) -> None:
    @task
    async def plan() -> None:
        called: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def callback() -> None:
            try:
                called.set_result(match(1))
            except Exception as error:
                called.set_exception(error)

        asyncio.get_running_loop().call_soon(callback)
        await called

    with pytest.raises(BlocksLoop):
        start(desk, plan)


def test_a_synchronous_task_runs_on_a_running_loop(desk: Desk) -> None:
    """A notebook's cell runs on a loop: whoever calls a synchronous task there blocks it knowingly."""

    @step
    def outer(x: int) -> int:
        return match(x) + post(x)

    @task
    def plan() -> int:
        return outer(1) + match(2)

    async def cell() -> int:
        found: int = desk.run(plan)
        return found

    assert asyncio.run(cell()) == 7
    assert list(verified(desk)) == ["outer/match", "outer", "match"]


def test_a_synchronous_task_may_have_a_loop_of_its_own(desk: Desk) -> None:
    async def both(x: int) -> list[int]:
        return list(await asyncio.gather(match_async(x), match.aio(x), post_async(x)))

    @step
    def outer(x: int) -> list[int]:
        return asyncio.run(both(x))

    @task
    def plan() -> list[int]:
        return outer(1) + asyncio.run(both(2))

    assert start(desk, plan) == [2, 2, 1, 4, 4, 2]


def test_a_run_inside_a_step_of_another_run_is_a_run_of_its_own(desk: Desk) -> None:
    @task
    def inner_plan(x: int) -> int:
        return match(x)

    @step
    def outer(x: int) -> int:
        found: int = desk.run(inner_plan, x, run_id="inner")
        return found + match(x)

    @task
    def plan() -> int:
        return outer(1)

    assert start(desk, plan) == 4
    assert list(verified(desk)) == ["outer/match", "outer"]
    assert [record.path for record in desk.records("step_verified", run_id="inner")] == ["match"]


# ── child processes ─────────────────────────────────────────────────────────────────────────────────

CHILD = """
import sys
from milepost import step
@step
def match(x: int) -> int:
    return x
try:
    print(match(1))
except Exception as error:
    print(type(error).__name__, error)
"""


def child(environ: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [sys.executable, "-c", CHILD], capture_output=True, text=True, check=True, timeout=WAIT_S, env=environ
    )
    return done.stdout.strip()


def test_a_child_process_belongs_to_no_run(desk: Desk) -> None:
    """It finds MILEPOST_RUN while the run is active; before and after, it is a process like any other."""

    @step
    def ask_a_child(x: int) -> str:
        return child()

    @task
    def plan() -> str:
        return ask_a_child(1)

    said = start(desk, plan)
    assert said.startswith("OutsideRun 'match' was called outside its run: this process was started by run r")
    assert "MILEPOST_RUN" not in os.environ
    assert child() == "1"


def test_the_environment_is_put_back_also_after_a_failure(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process may be a child itself."""
    monkeypatch.setenv("MILEPOST_RUN", "1 outer")

    @step
    def fails(x: int) -> int:
        assert os.environ["MILEPOST_RUN"] == f"{os.getpid()} r"
        raise ValueError

    @task
    def plan() -> int:
        return fails(1)

    with pytest.raises(StepFailed):
        start(desk, plan)
    assert os.environ["MILEPOST_RUN"] == "1 outer"
    with pytest.raises(OutsideRun, match="started by run outer"):
        match(1)


def test_a_forked_child_never_speaks_for_the_run(desk: Desk, tmp_path: Path) -> None:
    """A child that falls out of the body, as the parent does, writes nothing and gives no lease back."""
    said = tmp_path / "said"
    parent = os.getpid()

    @step
    def forks(x: int) -> int:
        pid = os.fork()
        if pid == 0:
            try:
                match(1)
            except OutsideRun:
                said.write_text("refused\n")
            return -1
        assert os.waitpid(pid, 0)[1] == 0
        return x

    @task
    def plan() -> int:
        return forks(1) + match(2)

    try:
        found = start(desk, plan)
    except BaseException as error:
        if os.getpid() == parent:
            raise
        with said.open("a") as file:
            file.write(f"{type(error).__name__}: {error}\n")
        os._exit(0)
    if os.getpid() != parent:
        os._exit(1)
    assert found == 5
    first, second = said.read_text().splitlines()
    assert first == "refused"
    assert (
        second == "OutsideRun: 'r' was called outside its run: this process was forked from the one that holds the run"
    )
    assert list(verified(desk)) == ["forks", "match"]
