"""What a drill's process does with its order: run the task, look at the outside, or keep a world's setup alive.

It is a process of its own from its first line to its last: the user's modules are imported here, stores opened here.
Called in a fresh fork by `warm`.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from milepost.api import AsyncTask, Task
from milepost.drill.approvals import approved
from milepost.drill.moment import MovedClock
from milepost.drill.named import Named, load
from milepost.drill.order import RUN_ID, Order
from milepost.drill.sends import RETRY_AFTER_S, Sends
from milepost.drill.watch import Watch
from milepost.errors import MilepostError
from milepost.runtime import crash, leases, registry
from milepost.runtime.clock import SystemClock

BROKEN = 99
"""Exit status of a process whose own code, or the user's outside the task, raised."""


def carry_out(order: Order, ready: int, over: int) -> int:
    """Become the process of one order; return its exit status.

    One that keeps a world says so through the pipe `ready` and stays until `over` is closed; others get -1 for both.
    """
    _settle_in(order)
    told: dict[str, Any] = {}
    try:
        if order.do == "run":
            return _run(order, told)
        if order.do == "observe":
            told["observed"] = _observed(_loaded(order.function))
        else:
            _keep(order, ready, over)
        return 0
    except BaseException as error:  # noqa: BLE001 – the user's code: whatever it raises is told to the drill
        traceback.print_exc()
        told.update(code="raised", message=f"{type(error).__name__}: {error}"[:500])
        return BROKEN
    finally:
        if told:
            _tell(order.told, told)


def _settle_in(order: Order) -> None:
    """Take the order's folder, environment and output."""
    output = os.open(order.output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, descriptor in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, descriptor)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)  # the old one may have read ahead what is not for us
    os.chdir(order.folder)
    os.environ.update(order.environ)


def _tell(path: str, told: Mapping[str, Any]) -> None:
    """Crash: nothing is told, or all of it."""
    new = f"{path}.new"
    Path(new).write_text(json.dumps(told, default=str), encoding="utf-8")
    os.replace(new, path)


def _loaded(what: Named | None) -> Any:
    assert what is not None
    return load(what)


def _observed(observe: Callable[[], Any]) -> Any:
    """Return what `observe` or its coroutine saw, as plain JSON data, whatever classes it is made of."""
    from pydantic_core import to_jsonable_python

    seen = observe()
    return to_jsonable_python(asyncio.run(seen) if asyncio.iscoroutine(seen) else seen)


# ── running the task ────────────────────────────────────────────────────────────────────────────────


def _run(order: Order, told: dict[str, Any]) -> int:
    named: Task[..., Any] | AsyncTask[..., Any] = _loaded(order.task)
    task = type(named)(replace(named.spec, shadow_first=0))  # in the drill's world nobody is promoted
    if order.versions:
        task = _of_another_version(task)
    args, kwargs = task.spec.arguments.spread(task.spec.arguments.decode(order.inputs.encode("utf-8")))
    _arm(order)
    with _watching(order):
        options = _options(order)
        clock, noted = options.get("clock") or SystemClock(), told.setdefault("asked", [])
        try:
            ready = task.options(**options)
            result = approved(lambda: _result(ready, args, kwargs), RUN_ID, options["environ"], clock, noted)
        except MilepostError as error:
            if error.__cause__ is not None:
                traceback.print_exception(error.__cause__)
            told.update(code=error.code, message=str(error), path=str(error.facts.get("path", "")))
            return error.exit_status
    told["result"] = _result_data(task, result)
    return 0


def _result(task: Task[..., Any] | AsyncTask[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    if isinstance(task, AsyncTask):
        return asyncio.run(task.run(RUN_ID, *args, **kwargs))
    return task.run(RUN_ID, *args, **kwargs)


def _result_data(task: Task[..., Any] | AsyncTask[..., Any], result: Any) -> Any:
    data = task.spec.output.encode(result)
    if task.spec.output.media_type == "application/json":
        return json.loads(data)
    return data.decode("utf-8", "backslashreplace")


def _options(order: Order) -> dict[str, Any]:
    options: dict[str, Any] = {"environ": dict(os.environ)}
    if order.clock is not None:
        options["clock"] = MovedClock(Path(order.clock))
    if order.lease_s is not None:
        options["lease_s"] = order.lease_s
    return options


def _of_another_version(task: Task[..., Any] | AsyncTask[..., Any]) -> Task[..., Any] | AsyncTask[..., Any]:
    """Return the task as if its model and the code of all its steps had changed since."""
    declared = task.spec.versions
    for by_place in registry._CALLS.values():
        for spec in by_place.values():
            spec.versions["version"] = "drill"  # type: ignore[index]
    return type(task)(replace(task.spec, versions=lambda: {**declared(), "model": "drill"}))


def _watching(order: Order) -> ExitStack:
    on = ExitStack()
    if order.watch is not None:
        watch = Watch(Path(order.watch), order.own)
        watch.begin()
        on.callback(watch.end)
    return on


# ── what befalls it ─────────────────────────────────────────────────────────────────────────────────


def _arm(order: Order) -> None:
    """Arm what the order wants; killing is armed by the environment, when the run opens."""
    if order.sends is not None:
        fault = order.fault or {}
        wait_s = RETRY_AFTER_S if order.clock is not None else 1.0
        crash.sending = Sends(Path(order.sends), fault.get("kind"), fault.get("path", ""), wait_s)
    if order.freeze is not None:
        crash.armed = _at(order.freeze, lambda: os.kill(os.getpid(), signal.SIGSTOP))
    if order.stop is not None:
        crash.armed = _at(order.stop, _stop)


def _at(point: str, act: Callable[[], None]) -> Callable[[str, str], None]:
    """Return a hook that acts once, at a point `LABEL PHASE N` or at the first one of any kind."""
    kind, _, number = point.rpartition(" ")
    left = [1 if point == "first" else int(number)]

    def reached(label: str, phase: str) -> None:
        if point == "first" or f"{label} {phase}" == kind:
            left[0] -= 1
            if left[0] == 0:
                act()

    return reached


def _stop() -> None:
    """Die as by a power cut a moment later. Crash: everything recorded so far is durable."""
    for run in leases.active_runs():
        run.journal.flush()
    os.kill(os.getpid(), signal.SIGKILL)


# ── keeping a world ─────────────────────────────────────────────────────────────────────────────────


def _keep(order: Order, ready: int, over: int) -> None:
    """Set the world up, say which environment its processes get, stay until the world is over, tear it down."""
    with ExitStack() as stack:
        if order.teardown is not None:
            stack.callback(load(order.teardown))
        made = load(order.function)() if order.function is not None else None
        if isinstance(made, AbstractContextManager):
            made = stack.enter_context(made)
        environ = {str(name): str(value) for name, value in (made or {}).items()}
        _tell(order.told, {"environ": environ})
        os.write(ready, b".")
        os.read(over, 1)
