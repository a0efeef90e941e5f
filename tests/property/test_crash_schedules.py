"""Random plans under random crash schedules: properties 2, 3, 4, 6 and 7 of the house guide."""

from __future__ import annotations

import contextvars
from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schedule_worlds import APPROVED, ATTEMPTS, CHARACTERS, MEMORY, Node, Process, World

from milepost.errors import LeaseTaken, QuestionError
from milepost.protocol.policy import STARTS_MAX
from milepost.records.model import AnswerEntered, IntentRecorded, Record, StepStarted
from milepost.runtime import crash

CALM = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
LEASE_S = 0.001
NEVER_RENEWED_S = 1e9
"""A lease whose holder gives no sign of life: its keeper sleeps as well."""
NOBODY_KNOWS = ("neither", "forgets-keys")

LEAVES = st.tuples(st.sampled_from(["plain", "checked", "flaky", "post", "posts"]), st.integers(0, 2))
CALLS = st.one_of(LEAVES, st.tuples(st.just("outer"), st.lists(LEAVES, max_size=3)))
DEATHS = st.lists(st.integers(1, 90), max_size=6)


def named(calls: list[tuple[str, object]], prefix: str = "n") -> tuple[Node, ...]:
    """Name calls by their place; a name ends with how often the call fails or is refused at first."""
    return tuple(_named(kind, more, f"{prefix}{index}") for index, (kind, more) in enumerate(calls))


def _named(kind: str, more: object, name: str) -> Node:
    if kind == "outer":
        assert isinstance(more, list)
        return Node(kind, f"{name}-0", named(more, f"{name}."))
    assert isinstance(more, int)
    if kind == "posts":
        return Node(kind, name, tuple(Node("post", f"{name}.{i}-0") for i in range(more + 1)), times=more + 1)
    return Node(kind, f"{name}-{more}", times=more)


PLANS = st.lists(CALLS, min_size=1, max_size=4).map(named)


def reference(plan: tuple[Node, ...], character: str) -> World:
    world = World(plan, character)
    world.finish()
    return world


def check_attempts(records: list[Record]) -> None:
    """Starts never pass the policy; an answer of a person allows as many once more."""
    starts: Counter[str] = Counter()
    for record in records:
        if isinstance(record, AnswerEntered):
            starts.clear()
        elif isinstance(record, (StepStarted, IntentRecorded)) and "outer[" not in record.path.rpartition("/")[2]:
            starts[record.path] += 1
            assert starts[record.path] <= max(ATTEMPTS, STARTS_MAX), record


@CALM
@given(plan=PLANS, character=st.sampled_from((*CHARACTERS, APPROVED)), deaths=DEATHS)
def test_under_any_crash_schedule_it_ends_like_the_undisturbed_run(
    plan: tuple[Node, ...], character: str, deaths: list[int]
) -> None:
    """Each key is applied once; each output has its digest; nothing began before what it waits for was durable."""
    world = World(plan, character)
    for die_at in deaths:
        if world.start(die_at):
            break
        assert world.missing_artifacts() == []
        check_attempts(world.records())
        if character == "forgets-keys":
            world.clock.move(MEMORY)
    world.finish()
    expected = reference(plan, character)
    assert world.violations == []
    assert world.missing_artifacts() == []
    assert world.digests() == expected.digests()
    assert world.provider.applied == expected.provider.applied
    assert set(world.provider.applied.values()) <= {1}
    assert len(world.verified()) == len(set(world.verified())), "no step is verified twice"
    check_attempts(world.records())
    if character not in NOBODY_KNOWS:
        assert set(world.asked) <= {"attempts-used", *(["approval"] if character == APPROVED else [])}


@CALM
@given(plan=PLANS, at=st.integers(1, 90))
def test_a_process_that_was_succeeded_while_it_slept_writes_nothing_more(plan: tuple[Node, ...], at: int) -> None:
    """A smaller token never writes, wherever its holder fell asleep; the provider honours keys, so nothing doubles."""
    world = World(plan, "honours-keys")
    slept: list[list[Record]] = []
    passed = 0

    def sleep(point: str) -> None:
        nonlocal passed
        passed += 1
        if passed == at:
            slept.append(contextvars.Context().run(succeed, world))

    sleeper = Process(world, None, sleep)
    crash.armed = sleeper.reached
    try:
        sleeper.run(lease_s=NEVER_RENEWED_S)
    except LeaseTaken:
        assert slept
    finally:
        crash.armed = None
    assert world.records() == (slept[0] if slept else world.records())
    assert set(world.provider.applied.values()) <= {1}
    assert world.digests() == reference(plan, "honours-keys").digests()


def succeed(world: World) -> list[Record]:
    """Take the run over from a holder that stood still, finish it, return what is recorded then."""
    world.clock.move(timedelta(seconds=60))
    before, crash.armed = crash.armed, None
    world.store.flush()
    try:
        Process(world, None).run(lease_s=LEASE_S)
    except QuestionError:
        world.answer()
        world.finish()
    crash.armed = before
    return world.records()


@pytest.mark.slow
@pytest.mark.parametrize("character", ["looked-up", "neither"])
def test_every_single_death_of_one_rich_plan_is_survived(character: str) -> None:
    """Not a sample: each point of one plan that has every kind of call."""
    plan = named(
        [("plain", 0), ("checked", 0), ("flaky", 1), ("outer", [("plain", 0), ("post", 1), ("posts", 0)]), ("posts", 1)]
    )
    expected = reference(plan, character)
    die_at = 0
    done = False
    while not done:
        die_at += 1
        world = World(plan, character)
        done = world.start(die_at)
        if character == "forgets-keys":
            world.clock.move(MEMORY)
        world.finish()
        assert world.violations == []
        assert world.digests() == expected.digests(), die_at
        assert world.provider.applied == expected.provider.applied, die_at
    assert die_at > 100
