"""The pytest plugin: `def test_survives(drill): drill(reconcile, month="2026-10", observe=ledger)`.

Loaded by every pytest run where Milepost is installed, so it imports nothing until the fixture is used.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from milepost.api import AsyncTask, Task
    from milepost.drill.outcome import Report


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("milepost")
    group.addoption("--drill-points", default=None, metavar="all|N", help="Trials of each kind in every drill.")
    group.addoption("--drill-point", action="append", default=[], metavar="POINT", help="Replay one trial of a drill.")


class Drill(Protocol):
    """What the fixture gives."""

    def __call__(
        self,
        task: Task[..., Any] | AsyncTask[..., Any],
        /,
        *args: Any,
        observe: Callable[[], Any] | None = None,
        setup: Callable[[], Any] | None = None,
        teardown: Callable[[], Any] | None = None,
        points: int | None = None,
        ignore: Sequence[str] = (),
        allow: Sequence[str] = (),
        workers: int = 2,
        seed: int = 0,
        real_time: bool = False,
        patience_s: float = 120.0,
        **inputs: Any,
    ) -> Report: ...


@pytest.fixture
def drill(request: pytest.FixtureRequest) -> Drill:
    """Drill a task with these inputs; fail with the table and the differences unless everything held."""

    def drilled(task: Any, /, *args: Any, **given: Any) -> Report:
        from milepost.drill.campaign import drill as carry_out
        from milepost.drill.telling import lines

        how = {name: given.pop(name) for name in _OPTIONS & given.keys()}
        report = carry_out(_drilled(task, args, given, how), _wanted(request, how), replay=_replay(request))
        told = "\n".join(lines(report))
        if not report.held:
            pytest.fail(told, pytrace=False)
        print(told)  # noqa: T201 – pytest shows it with -s or -rP
        return report

    return drilled


_FUNCTIONS = ("observe", "setup", "teardown")
_OPTIONS = {*_FUNCTIONS, "points", "ignore", "allow", "workers", "seed", "real_time", "patience_s"}
"""Names that are the drill's own; an input of such a name is given by position."""


def _drilled(task: Any, args: tuple[Any, ...], inputs: dict[str, Any], how: dict[str, Any]) -> Any:
    from milepost.drill.named import named
    from milepost.drill.world import Drilled

    encoded = task.spec.arguments.round_trip(task.spec.arguments.bind(args, inputs)).decode("utf-8")
    functions = {name: named(how[name], name) for name in _FUNCTIONS if how.get(name) is not None}
    real_time = bool(how.get("real_time"))
    return Drilled(named(task, "task"), task.spec.name, encoded, real_time=real_time, **functions)


def _wanted(request: pytest.FixtureRequest, how: dict[str, Any]) -> Any:
    from milepost.drill.choosing import Wanted

    points = request.config.getoption("--drill-points") or how.get("points")
    given: dict[str, Any] = {name: how[name] for name in ("seed", "workers", "patience_s") if name in how}
    given |= {name: tuple(how[name]) for name in ("ignore", "allow") if name in how}
    return Wanted(
        points=None if points in (None, "all") else int(points),
        only=tuple(request.config.getoption("--drill-point")),
        **given,
    )


def _replay(request: pytest.FixtureRequest) -> str:
    return shlex.join(["pytest", request.node.nodeid, "--drill-point"])
