"""Where a drill or the demo lets a process die: by number, or by the n-th point of one kind."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from milepost.runtime import crash

POINTS = [("now", "before"), ("send", "before"), ("send", "durable"), ("now", "before"), ("send", "durable")]


@pytest.fixture
def died(monkeypatch: pytest.MonkeyPatch) -> list[signal.Signals]:
    """What would have been sent to this process; crash points are disarmed again afterwards."""
    sent: list[signal.Signals] = []
    monkeypatch.setattr(crash, "armed", None)
    monkeypatch.setattr(os, "kill", lambda _pid, number: sent.append(number))
    return sent


@pytest.mark.parametrize(("at", "passed"), [("1", 1), ("5", 5), ("send durable 1", 3), ("send durable 2", 5)])
def test_process_dies_at_exactly_one_place(at: str, passed: int, died: list[signal.Signals]) -> None:
    """A place that could mean two points would make a demo or a drill that proves something else than it says."""
    crash.arm_from({"MILEPOST_CRASH_AT": at})
    assert crash.armed is not None
    for number, point in enumerate(POINTS, start=1):
        crash.armed(*point)
        assert died == ([signal.SIGKILL] if number >= passed else [])


def test_log_names_points_in_the_words_that_arm_them(tmp_path: Path, died: list[signal.Signals]) -> None:
    """A line of the log, with its count, is a place."""
    log = tmp_path / "points"
    crash.arm_from({"MILEPOST_CRASH_LOG": str(log)})
    assert crash.armed is not None
    for point in POINTS:
        crash.armed(*point)
    assert log.read_text().splitlines()[2] == "send durable"
    assert died == []
