"""What a run spent is one number, wherever it is said: `show`, `runs` and the limits count the same."""

from __future__ import annotations

import pytest

from milepost import Limits, spent, step, task
from milepost.cli.overview import header_lines
from milepost.stores.memory import MemoryStore
from milepost.views.opened import read_whole, stands
from milepost.views.overview import overview_object


@step
def read(number: int) -> int:
    spent(input_tokens=10, output_tokens=1, cost="0.1", currency="EUR")
    return number


@step
def both() -> int:
    spent(input_tokens=5, cost="0.01", currency="EUR")
    return read(1) + read(2)


@step
def breaks() -> int:
    spent(output_tokens=2, cost="0.001", currency="EUR")
    raise ValueError("stop here")


@task(limits=Limits(cost=100))
def spends_inside() -> int:
    return read(0) + both() + breaks()


def test_what_nested_steps_and_failed_attempts_spent_is_in_the_total() -> None:
    store = MemoryStore()
    with pytest.raises(Exception, match="stop here"):
        spends_inside.options(store=store).run("r")
    opened = read_whole(store, "r")
    said = overview_object(store, opened, stands(store, opened.row))
    assert said["spent"] == {"input_tokens": 35, "output_tokens": 5, "cost": "0.311", "currency": "EUR"}
    assert (said["cost"], said["tokens"]) == ("0.311", 40)
    assert header_lines(opened, stands(store, opened.row))[2].endswith("35 + 5 tokens, 0.311 EUR")


def test_a_run_that_spent_nothing_says_nothing() -> None:
    @task
    def plain() -> int:
        return 1

    store = MemoryStore()
    plain.options(store=store).run("r")
    opened = read_whole(store, "r")
    assert overview_object(store, opened, stands(store, opened.row))["spent"] is None
