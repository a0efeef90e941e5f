"""Calls of ours that do not fit: told with what was expected, what was found and what to do."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

import pytest
from desk import Desk

from milepost import Key, MilepostError, effect, step, task
from milepost.errors import BadName, BadOption, MisuseError, NotEncodable, RunEnded, StepFailed
from milepost.stores.memory import MemoryStore


@step
def one(x: int) -> int:
    return x


@step
async def one_async(x: int) -> int:
    return x


@effect(key=lambda x: x)
def send(key: Key, x: int) -> int:
    return x


@task
def takes_one(x: int) -> int:
    return x


MAPS: list[Callable[..., Any]] = [one.map, one_async.map]


@pytest.mark.parametrize("map_of", MAPS, ids=["step", "async step"])
@pytest.mark.parametrize(
    ("args", "kwargs", "found"),
    [
        (([1], [2]), {}, "found 2 arguments"),
        (([1], 4), {}, "found 2 arguments"),
        ((5,), {}, "expected an iterable, found int"),
        ((None,), {}, "expected an iterable, found NoneType"),
        (([1],), {"concurrency": 0}, "expected 1 to 256, found 0"),
    ],
)
def test_a_map_that_cannot_be_carried_out_is_refused(
    map_of: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], found: str
) -> None:
    """Python's own TypeError was recorded as a failure of the plan's. Outside a run it is the same."""
    with pytest.raises(BadOption, match=found) as refused:
        map_of(*args, **kwargs)
    assert ".map" in refused.value.hint


def test_a_map_inside_a_run_is_refused_as_misuse(desk: Desk) -> None:
    @task
    def maps(how: str) -> None:
        {"sync": one, "effect": send}[how].map(5)  # type: ignore[arg-type]

    @task
    async def maps_async() -> None:
        await one_async.map(5)  # type: ignore[arg-type]

    for how in ("sync", "effect"):
        with pytest.raises(BadOption, match="found int"):
            maps.options(store=MemoryStore()).run(how, how)
    with pytest.raises(BadOption, match="found int"):
        asyncio.run(maps_async.options(store=MemoryStore()).run("r"))


def test_an_option_of_a_run_there_is_none_of_is_named() -> None:
    untyped: Any = takes_one
    with pytest.raises(BadOption, match=r"stor=\): there is no such option") as refused:
        untyped.options(stor=1)
    assert "store, wait" in refused.value.hint
    with pytest.raises(BadOption, match="expected a store, found str") as refused:
        untyped.options(store="store.sqlite")
    assert "MILEPOST_STORE" in refused.value.hint


@pytest.mark.parametrize(
    ("args", "kwargs", "found"),
    [((), {}, "missing a required argument: 'x'"), ((1, 2), {}, "too many"), ((1,), {"y": 2}, "unexpected keyword")],
)
def test_inputs_that_do_not_fit_are_misuse(args: tuple[Any, ...], kwargs: dict[str, Any], found: str) -> None:
    untyped: Any = takes_one.options(store=MemoryStore())
    with pytest.raises(MisuseError, match=f"task takes_one, inputs.*{found}") as refused:
        untyped.run("r", *args, **kwargs)
    assert "after the run id" in refused.value.hint


def test_a_run_id_that_is_no_text_is_told_so() -> None:
    untyped: Any = takes_one.options(store=MemoryStore())
    with pytest.raises(BadName, match="expected str, found int") as refused:
        untyped.run(5, 1)
    assert "text" in refused.value.hint


@pytest.mark.parametrize(
    ("value", "way_out"),
    [
        ({1}, "a set"),
        ((n for n in range(3)), "a list of a generator"),
        (len, "the name of a function"),
        ({1: 2}, "dict[int, str]"),
        (math.nan, "NaN"),
        ("\ud800", "errors='replace'"),
    ],
    ids=["set", "generator", "function", "keys", "nan", "surrogate"],
)
def test_an_output_that_cannot_be_recorded_says_the_way_out(value: object, way_out: str) -> None:
    @step
    def gives():  # type: ignore[no-untyped-def]
        return value

    @task
    def gives_plan() -> None:
        gives()

    with pytest.raises(StepFailed) as failed:
        gives_plan.options(store=MemoryStore()).run("r")
    cause = failed.value.__cause__
    assert isinstance(cause, NotEncodable)
    assert way_out in cause.hint


def test_a_hint_names_the_run_in_a_program_too() -> None:
    """It said `milepost fork RUN` where only the command line filled the id in."""
    error: MilepostError = RunEnded(run_id="my RUN", status="done")
    assert "`milepost fork 'my RUN' --from STEP`" in error.hint
