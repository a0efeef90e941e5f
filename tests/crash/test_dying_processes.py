"""Processes that die, stop, freeze, fork or race: each leaves a run that goes on where it stood, held by one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from clock import START
from fork_plan import TRIES
from toy_orders import RUN_ID
from toy_provider import Character
from toy_world import KILLED, Starter, World, provider

from milepost.records.model import Record, StartReturned, StepStarted, StepVerified, WaitRecorded
from milepost.records.rows import AnswerRow
from milepost.records.times import format_time
from milepost.runtime.opening import read_snapshot
from milepost.stores.sqlite.store import SqliteStore

PATIENCE_S = 60
LEASE_S = 0.2
FLAVOURS = ("sync", "async")


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Starter, int]]:
    starter = Starter()
    with provider(tmp_path_factory.mktemp("provider") / "ledger.sqlite") as port:
        yield starter, port
    starter.close()


@pytest.fixture(params=FLAVOURS)
def world(request: pytest.FixtureRequest, tmp_path: Path, outside: tuple[Starter, int]) -> World:
    return World(tmp_path / uuid.uuid4().hex, request.param, Character.LOOKED_UP, *outside)


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes of a test; none outlives it, not even a frozen one."""
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def held(world: World, started: list[subprocess.Popen[bytes]], **environ: object) -> subprocess.Popen[bytes]:
    """Start a process and return when it runs the body of `split`, which waits for `let_go`."""
    for name in ("ready", "gate"):
        os.mkfifo(world.folder / name)
    process = world.open(TOY_HOLD_IN="split", TOY_TOLD="told-held", **environ)
    started.append(process)
    (world.folder / "ready").read_text(encoding="ascii")
    return process


def let_go(world: World) -> None:
    (world.folder / "gate").write_text("", encoding="ascii")


def told(world: World, name: str) -> dict[str, str]:
    found: dict[str, str] = json.loads((world.folder / name).read_text(encoding="utf-8"))
    return found


def of_kind(world: World, kind: type[Record], path: str) -> list[Record]:
    return [r for r in world.records() if isinstance(r, kind) and getattr(r, "path", None) == path]


# ── killed ──


@pytest.mark.parametrize("body", ["read", "split", "inner alpha", "outer", "grow", "flake", "write"])
def test_killed_inside_a_body_only_that_body_runs_again(world: World, body: str) -> None:
    assert world.start(TOY_DIE_IN=body) == KILLED
    assert world.finish() == []
    again = {name for name, times in world.bodies().items() if times == 2} - {"flake"}
    assert again - {"outer", "inner beta"} == {body} - {"outer", "flake"}
    assert {len(sends) for sends in world.ledger().values()} == {1}


def test_killed_inside_a_verifier_the_body_is_not_repeated(world: World) -> None:
    """The output was recorded before it was verified: what cost an hour is not computed twice."""
    assert world.start(TOY_DIE_IN="has_words") == KILLED
    assert world.finish() == []
    assert (world.bodies()["split"], world.bodies()["has_words"]) == (1, 2)
    assert len(of_kind(world, StepStarted, "split")) == 1


def test_a_step_that_kills_its_process_each_time_is_started_three_times_then_asked_about(world: World) -> None:
    for _ in range(3):
        assert world.start(TOY_DIE_IN="grow") == KILLED
    for _ in range(2):
        assert world.start(TOY_DIE_IN="grow") == 4, "at once, and no fourth time"
        assert world.told()["code"] == "attempts-used"
    assert world.bodies()["grow"] == 3
    with world.store() as store:
        (question,) = store.questions(RUN_ID)
        assert question.path == "grow"
        store.answer(AnswerRow(question.question_id, RUN_ID, "again", "ada", format_time(START)))
    assert world.finish() == []
    assert world.bodies()["grow"] == 4


def test_killed_while_waiting_to_retry_the_wait_is_neither_reset_nor_shortened(world: World) -> None:
    """The wait is an absolute time in the journal, not a countdown of a process."""
    assert world.start(TOY_DIE_WAITING=1) == KILLED
    (wait,) = of_kind(world, WaitRecorded, "flake")
    world.clock().move(timedelta(seconds=0.5))
    assert world.finish() == []
    starts = of_kind(world, StepStarted, "flake")
    assert isinstance(wait, WaitRecorded)
    assert [start.at for start in starts] == [format_time(START), wait.until]
    assert wait.until == format_time(START + timedelta(seconds=2))


def test_a_holder_that_was_killed_is_succeeded_at_once(world: World, started: list[subprocess.Popen[bytes]]) -> None:
    process = held(world, started)
    assert world.start() == 3, "while it lives it holds"
    process.kill()
    process.wait(PATIENCE_S)
    assert world.finish() == []


# ── stopped in order ──


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_at_the_next_boundary_and_gives_everything_back(world: World, number: signal.Signals) -> None:
    """What ran ends and is kept, what it was inside of gets its start back, and nobody holds the run."""
    assert world.start(TOY_SIGNAL_IN=f"inner alpha = {number:d}") == 128 + number
    assert world.told()["code"] == "run-interrupted"
    assert len(of_kind(world, StepVerified, "outer/inner")) == 1
    assert len(of_kind(world, StartReturned, "outer")) == 1
    with world.store() as store:
        row = store.run(RUN_ID)
        assert row is not None
        assert row.held is None
        snapshot = read_snapshot(store, RUN_ID, None).snapshot
        assert (snapshot.status, snapshot.steps["outer"].starts) == ("interrupted", 0)
    assert world.finish() == []
    assert (world.bodies()["inner alpha"], world.bodies()["outer"]) == (1, 2)


def test_orderly_stops_never_use_up_the_attempts(world: World) -> None:
    for _ in range(4):
        assert world.start(TOY_SIGNAL_IN=f"outer = {signal.SIGTERM:d}") == 128 + signal.SIGTERM
    assert world.finish() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_second_signal_stops_at_once_and_is_no_worse_than_a_kill(world: World, number: signal.Signals) -> None:
    assert world.start(TOY_SIGNAL_IN=f"inner alpha = {number:d}", TOY_SIGNAL_TWICE=1) == -number
    assert world.finish() == []
    assert {len(sends) for sends in world.ledger().values()} == {1}


# ── raced, frozen ──


def test_of_two_starters_one_runs_and_the_other_is_told_who_holds_it_and_since_when(
    world: World, started: list[subprocess.Popen[bytes]]
) -> None:
    for name in ("ready", "gate"):
        os.mkfifo(world.folder / name)
    pair = [world.open(TOY_HOLD_IN="split", TOY_TOLD=f"told-{number}") for number in range(2)]
    started += pair
    (world.folder / "ready").read_text(encoding="ascii")
    loser, status = first_to_end(pair)
    winner = pair[1 - loser]
    assert status == 3
    answer = told(world, f"told-{loser}")
    assert answer["code"] == "run-busy"
    assert f"process {winner.pid} on " in answer["message"]
    assert f"since {format_time(START)}" in answer["message"]
    let_go(world)
    assert winner.wait(PATIENCE_S) == 0
    assert set(world.bodies().values()) <= {1, 2}
    assert {len(sends) for sends in world.ledger().values()} == {1}


def first_to_end(processes: list[subprocess.Popen[bytes]]) -> tuple[int, int]:
    """Wait for whichever process ends first; return its number and exit status."""
    ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    number = next(number for number, process in enumerate(processes) if process.pid == ended.si_pid)
    return number, processes[number].wait(PATIENCE_S)


def test_a_frozen_worker_that_wakes_after_its_lease_writes_nothing(
    world: World, started: list[subprocess.Popen[bytes]]
) -> None:
    """It stood still for a lease's length, another took the run and finished it: the store refuses the sleeper."""
    sleeper = held(world, started, TOY_LEASE_S=LEASE_S)
    sleeper.send_signal(signal.SIGSTOP)
    os.waitpid(sleeper.pid, os.WUNTRACED)
    world.clock().move(timedelta(seconds=60))
    assert world.start(TOY_LEASE_S=LEASE_S) == 0, world.output()
    before = world.standing(), world.records()
    sleeper.send_signal(signal.SIGCONT)
    let_go(world)
    assert sleeper.wait(PATIENCE_S) == 3
    assert told(world, "told-held")["code"] == "lease-taken"
    assert (world.standing(), world.records()) == before


@pytest.mark.parametrize("point", ["append:intent_recorded durable", "send before"])
def test_a_worker_frozen_between_intent_and_send_sends_nothing_when_it_wakes(
    world: World, started: list[subprocess.Popen[bytes]], point: str
) -> None:
    """More than a third of the lease has passed since the intent: the send is its successor's, who made it."""
    sleeper = world.open(TOY_FREEZE_AT=point, TOY_TOLD="told-frozen")
    started.append(sleeper)
    os.waitpid(sleeper.pid, os.WUNTRACED)
    world.clock().move(timedelta(seconds=60))
    assert world.start(TOY_LEASE_S=LEASE_S) == 0, world.output()
    before = world.standing()
    sleeper.send_signal(signal.SIGCONT)
    assert sleeper.wait(PATIENCE_S) == 3
    assert told(world, "told-frozen")["code"] == "lease-taken"
    assert world.standing() == before
    assert set(before.sent.values()) == {1}


# ── forked ──


@pytest.mark.parametrize("how", ["os", "fork", "spawn"])
def test_a_child_process_never_speaks_for_the_run(tmp_path: Path, how: str) -> None:
    """However it was made: no record, no send, no step run as if there were no run; the parent goes on unharmed."""
    plan = Path(__file__).with_name("fork_plan.py")
    command = [sys.executable, "-W", "error", str(plan), how]
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ran = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    refused = {name: found[name] for name in TRIES}
    if how == "spawn":
        assert refused.pop("heartbeat") == "done", "outside a run it does nothing"
    assert set(refused.values()) == {"outside-run"}, refused
    for name in ("inner", "sent"):
        assert (tmp_path / name).read_text(encoding="utf-8").split() == [str(found["pid"])]
    with closing(SqliteStore(tmp_path / "store.sqlite", create=False)) as store:
        opened = read_snapshot(store, "forks", None, every_chain=True)
    assert opened.refusal is None
    assert set(opened.snapshot.steps) | set(opened.snapshot.effects) == {"outer", "outer/inner", "send"}
