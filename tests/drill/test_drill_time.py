"""The time of a drill's world: nobody sits out a wait, and nobody seems silent because another one waited."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from drilling import drilled
from good_tasks import desk_of_words, ledger, small

from milepost.drill.moment import MovedClock

HALF_A_MINUTE = timedelta(seconds=30)


def test_a_wait_moves_the_time_of_the_world_and_the_ticks_of_its_own_process(tmp_path: Path) -> None:
    """What settles is measured in ticks too: if they stood still, a drill would spin until real time has passed."""
    waiting, other = MovedClock(tmp_path / "clock"), MovedClock(tmp_path / "clock")
    now, ticks, others = waiting.now(), waiting.ticks(), other.ticks()
    waiting.about_to_wait(now + HALF_A_MINUTE)
    assert waiting.now() >= now + HALF_A_MINUTE <= other.now()
    assert waiting.ticks() - ticks >= HALF_A_MINUTE.total_seconds() > other.ticks() - others


def test_a_call_that_timed_out_is_sent_again_when_it_has_settled() -> None:
    """Half a minute of settling passes in the world; the retry and its outcome are as they would be then."""
    report = drilled(small, "timeout:post[alpha]", observe=ledger, setup=desk_of_words)
    assert report.held
