"""Names, not positions: what a call is called, on whatever line and in whatever branch it is made (design §3)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from branches import start, verified
from desk import Desk

from milepost import Key, StepFailed, carry, current_run, effect, step, task
from milepost.errors import BadName, CalledInside, DuplicateStep

pytestmark = pytest.mark.timeout(60)


class OtherError(Exception):
    """What ends a run here."""


@step
def match(x: int) -> int:
    return x


@step(name="match")
async def match_async(x: int) -> int:
    return x


@step(key=lambda x: f"INV-{x}")
def keyed(x: int) -> int:
    return x


@effect()
def post(key: Key, x: int) -> int:
    return x


@effect(key=lambda x: x)
def post_keyed(key: Key, x: int) -> int:
    return x


def named(desk: Desk, body: Callable[[], Any]) -> list[str]:
    """Return the names of what a plan with this body calls."""
    start(desk, task(name="plan")(body))
    return [record.path for record in desk.records("step_verified", "outcome_recorded")]


def test_on_the_bodys_own_line_calls_are_numbered(desk: Desk) -> None:
    def plan() -> int:
        return match(1) + match(1) + match(2)

    assert named(desk, plan) == ["match", "match#2", "match#3"]


def test_a_key_names_a_call(desk: Desk) -> None:
    def plan() -> int:
        return keyed(7) + post_keyed(7) + keyed(8)

    assert named(desk, plan) == ["keyed[INV-7]", "post_keyed[7]", "keyed[INV-8]"]


def test_map_numbers_its_items_in_order_whoever_is_faster(desk: Desk) -> None:
    """The name belongs to the item, not to the thread that was first."""

    def plan() -> list[int]:
        return match.map([5, 6, 7, 8], concurrency=4)

    assert sorted(named(desk, plan)) == ["match", "match#2", "match#3", "match#4"]
    inputs = {record.path: record.inputs.digest for record in desk.records("step_started")}
    plain = [desk.store.artifacts("r", [inputs[path]])[inputs[path]].data for path in sorted(inputs)]
    assert plain == [b'{"x":5}', b'{"x":6}', b'{"x":7}', b'{"x":8}']


def test_gather_numbers_what_is_called_on_its_line(desk: Desk) -> None:
    """A coroutine is named when it is called, not when it runs."""

    async def plan() -> list[int]:
        first, second = match_async(1), match_async(2)
        return await asyncio.gather(second, match.aio(3), first)

    assert sorted(named(desk, plan)) == ["match", "match#2", "match#3"]


def test_a_branch_is_named_by_its_inputs(desk: Desk) -> None:
    async def branch(x: int) -> int:
        return await match_async(x)

    async def plan() -> list[int]:
        return list(await asyncio.gather(branch(1), branch(2), branch(1)))

    one, two, again = sorted(named(desk, plan), key=lambda name: (name.endswith("#2"), name))
    assert one.startswith("match[~")
    assert two.startswith("match[~")
    assert one != two
    assert again in (f"{one}#2", f"{two}#2")


def test_a_thread_is_a_branch(desk: Desk) -> None:
    def plan() -> int:
        with ThreadPoolExecutor(1) as pool:
            return match(1) + pool.submit(carry(match), 1).result()

    own, branch = named(desk, plan)
    assert own == "match"
    assert branch.startswith("match[~")


def test_steps_nest_and_each_body_counts_for_itself(desk: Desk) -> None:
    @step
    def outer(x: int) -> int:
        return match(x) + match(x)

    def plan() -> int:
        return outer(1) + match(1) + outer(2)

    assert named(desk, plan) == [
        "outer/match",
        "outer/match#2",
        "outer",
        "match",
        "outer#2/match",
        "outer#2/match#2",
        "outer#2",
    ]


def test_inside_a_branch_a_body_has_a_line_of_its_own(desk: Desk) -> None:
    @step
    async def outer(x: int) -> int:
        return await match_async(x) + await match_async(x)

    async def branch(x: int) -> int:
        return await outer(x)

    async def plan() -> list[int]:
        return list(await asyncio.gather(branch(1), branch(2)))

    inner = [name.partition("/")[2] for name in named(desk, plan) if "/" in name]
    assert sorted(inner) == ["match", "match", "match#2", "match#2"]


def test_by_name_on_the_run_is_the_same_mechanism(desk: Desk) -> None:
    """Steps that are only known while they run are named as declared ones."""

    def plan() -> int:
        run = current_run()
        found: int = run.step("summarise", lambda x: x)(1)
        return found + run.step("summarise", lambda x: x)(2)

    assert named(desk, plan) == ["summarise", "summarise#2"]


# ── refused ─────────────────────────────────────────────────────────────────────────────────────────


def refused(desk: Desk, body: Callable[[], Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        start(desk, task(name="plan")(body))
    assert desk.records("intent_recorded")[1:] == []


def test_an_effect_without_key_is_called_once_in_a_body(desk: Desk) -> None:
    def plan() -> int:
        return post(1) + post(2)

    refused(desk, plan, DuplicateStep, "an effect without key= is called once")


def test_an_effect_without_key_is_called_once_in_all_branches(desk: Desk) -> None:
    """Other inputs do not tell two sends apart: after an edit they would be a third."""

    async def branch(x: int) -> int:
        return await post.aio(x)

    async def plan() -> list[int]:
        return list(await asyncio.gather(branch(1), branch(2)))

    refused(desk, plan, DuplicateStep, "an effect without key= is called once")


def test_an_effect_without_key_is_not_mapped_and_nothing_is_sent(desk: Desk) -> None:
    def plan() -> list[int]:
        return post.map([1, 2])

    refused(desk, plan, DuplicateStep, "an effect without key= is called once")
    assert desk.records("intent_recorded") == []


@pytest.mark.parametrize("call", [keyed, post_keyed])
def test_a_key_is_used_once_in_a_body(desk: Desk, call: Any) -> None:
    def plan() -> int:
        found: int = call(1) + call(1)
        return found

    refused(desk, plan, DuplicateStep, "the key '(INV-)?1' is taken")


@pytest.mark.parametrize("key", ["a\nb", "", "../x", "-x", "x" * 300, "~x", None, 1.5, True, b"x"])
def test_a_key_that_cannot_be_a_name_is_refused(desk: Desk, key: Any) -> None:
    @step(key=lambda x: key)
    def odd(x: int) -> int:
        return x

    def plan() -> int:
        return odd(1)

    refused(desk, plan, BadName, "key= of odd")


def test_equal_spellings_of_a_key_are_one_key(desk: Desk) -> None:
    """NFC and NFD look the same and are the same."""

    @step(key=lambda x: x)
    def spelled(x: str) -> str:
        return x

    def plan() -> str:
        return spelled("Caf\u00e9") + spelled("Cafe\u0301")

    refused(desk, plan, DuplicateStep, "is taken")


# ── what holds no calls ─────────────────────────────────────────────────────────────────────────────


def test_a_step_inside_an_effect_is_refused_before_anything_is_in_doubt(desk: Desk) -> None:
    """An effect is one write. What its code calls by name is seen before the intent is recorded."""

    @effect()
    def confused(key: Key, x: int) -> int:
        return match(x)

    def plan() -> int:
        return confused(1)

    refused(desk, plan, CalledInside, "'match' is called inside effect confused")
    assert desk.records("intent_recorded") == []


def test_a_step_reached_from_an_effect_is_refused_when_it_is_called(desk: Desk) -> None:
    """What the effect did before is not known here: its outcome stays unknown."""
    calls = {"match": match}

    @effect()
    def confused(key: Key, x: int) -> int:
        return calls["match"](x)

    def plan() -> int:
        return confused(1)

    with pytest.raises(StepFailed) as failed:
        start(desk, task(name="plan")(plan))
    assert isinstance(failed.value.__cause__, CalledInside)
    assert list(verified(desk)) == []


def test_an_effect_may_call_another_on_purpose(desk: Desk) -> None:
    """`.plain` says: I know that nothing protects this."""

    @effect()
    def deliberate(key: Key, x: int) -> int:
        return post.plain(key, x)

    def plan() -> int:
        return deliberate(1)

    assert named(desk, plan) == ["deliberate"]


def test_a_step_inside_a_verifier_fails_the_output(desk: Desk) -> None:
    @step(verify=lambda output: match(output) == output)
    def checked(x: int) -> int:
        return x

    def plan() -> int:
        return checked(1)

    with pytest.raises(StepFailed, match="inside verifier"):
        start(desk, task(name="plan")(plan))


# ── racing branches ─────────────────────────────────────────────────────────────────────────────────


def racing(seed: int) -> Callable[[], Awaitable[int]]:
    """Return a plan whose branches overtake each other differently for each seed."""
    chance = random.Random(seed)

    async def dawdle() -> None:
        for _ in range(chance.randrange(20)):
            await asyncio.sleep(0)

    @step
    async def inner(x: int) -> int:
        await dawdle()
        return x

    @step
    async def outer(x: int) -> int:
        await dawdle()
        return sum(await asyncio.gather(*(inner(x) for _ in range(3)))) + await match.aio(x)

    async def branch(x: int) -> int:
        await dawdle()
        found = await outer(x % 4)
        await dawdle()
        return found + await match.aio(found % 3)

    async def plan() -> int:
        async with asyncio.TaskGroup() as group:
            branches = [group.create_task(branch(x)) for x in range(8)]
        return sum(branch.result() for branch in branches) + sum(await match_async.map(range(5), concurrency=3))

    return plan


def test_two_undisturbed_runs_of_racing_branches_have_equal_names(desk: Desk) -> None:
    """Who is first must not decide what a record is called, else a resume would read another's."""
    found = set()
    for seed in range(6):
        plan = task(name="plan")(racing(seed))
        start(desk, plan, run_id=f"r{seed}")
        found.add(frozenset(record.path for record in desk.records("step_verified", run_id=f"r{seed}")))
    (names,) = found
    assert len(names) == 8 * (1 + 3 + 1) + 8 + 5
