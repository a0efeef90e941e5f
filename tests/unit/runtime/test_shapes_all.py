"""A question, a signal and a crash inside every shape of branches: what ran on is kept, nothing else begins."""

from __future__ import annotations

from typing import Any

import pytest
from branches import ASYNC_SHAPES, THREAD_SHAPES, Branches, dies, plan_of, resume, start, verified
from desk import Desk

from milepost.errors import AttemptsUsed, RunInterrupted
from milepost.protocol.keys import name_in

pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.parametrize("shape", [*ASYNC_SHAPES, *THREAD_SHAPES], ids=lambda shape: shape.__name__),
]


def names(desk: Desk) -> list[str]:
    return sorted(name_in(path) for path in verified(desk))


def test_a_question_lets_the_sibling_finish_and_nothing_else_begin(desk: Desk, shape: Any) -> None:
    """Whatever the plan swallows, the run stops for its question; the sibling's checkpoint is kept."""
    b = Branches("question")
    plan = plan_of(shape, b)
    with pytest.raises(AttemptsUsed, match="left"):
        start(desk, plan)
    assert names(desk) == ["right"]
    assert b.counts == {"left": 1, "right": 1}
    assert desk.status() == "asking"

    b.mend()
    desk.answer("again")
    assert resume(desk, plan) == 3
    assert b.counts == {"left": 2, "right": 1, "after": 1}


def test_a_signal_lets_both_finish_and_nothing_else_begin(desk: Desk, shape: Any) -> None:
    """An orderly stop waits for the bodies under way; the resume repeats none of them."""
    b = Branches("signal")
    plan = plan_of(shape, b)
    with pytest.raises(RunInterrupted) as stopped:
        start(desk, plan)
    assert stopped.value.exit_status == 143
    assert names(desk) == ["left", "right"]
    assert desk.status() == "interrupted"

    b.mend()
    assert resume(desk, plan) == 3
    assert b.counts == {"left": 1, "right": 1, "after": 1}


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_crash_repeats_what_was_under_way_and_nothing_else(desk: Desk, shape: Any, nth: int) -> None:
    """Dying when the n-th start is durable: what is verified by then is not repeated, and the plan still fits."""
    b = Branches("none")
    plan = plan_of(shape, b)
    dies(desk, plan, at="append:step_started", nth=nth)
    kept = names(desk)
    b.ran.clear()
    assert resume(desk, plan) == 3
    assert sorted(b.ran) == sorted({"left", "right", "after"} - set(kept))
    assert names(desk) == ["after", "left", "right"]
