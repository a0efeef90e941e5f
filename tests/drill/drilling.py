"""Drills a task in few words, for the tests beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from milepost.drill.campaign import drill
from milepost.drill.choosing import Wanted
from milepost.drill.named import named
from milepost.drill.outcome import Report
from milepost.drill.world import Drilled

TASKS = Path(__file__).parent / "tasks"


def drilled(
    task: Any,
    *only: str,
    points: int | None = None,
    observe: Callable[[], Any] | None = None,
    setup: Callable[[], Any] | None = None,
    teardown: Callable[[], Any] | None = None,
    **wanted: Any,
) -> Report:
    """Drill a task without inputs: the trials named, else `points` of each kind (None: all)."""
    given = {"observe": observe, "setup": setup, "teardown": teardown}
    functions = {name: named(function, name) for name, function in given.items() if function is not None}
    what = Drilled(named(task, "task"), task.spec.name, **functions)
    return drill(what, Wanted(points=points, only=only, **wanted))
