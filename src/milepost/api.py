"""What the decorators make: tasks, steps, effects. The only room that wires declarations, runtime and store.

`def` and `async def` are equal. Outside any run a step is the plain function and an effect is refused.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Concatenate, Generic, Never, ParamSpec, TypeVar, Unpack

from milepost import declare
from milepost.errors import BadOption, BlocksLoop, OutsideRun
from milepost.protocol.amounts import DURATION_MAX, is_number, shown
from milepost.protocol.keys import Key
from milepost.protocol.outcomes import unwrapped
from milepost.protocol.spec import EffectSpec, StepSpec, TaskSpec
from milepost.records.seal import checked_key, seal_key_in
from milepost.runtime import leases
from milepost.runtime.active import Options, RunOptions
from milepost.runtime.awaiting import awaitable, map_calls_async
from milepost.runtime.children import refuse_strangers
from milepost.runtime.clock import SystemClock
from milepost.runtime.context import here_or_refused
from milepost.runtime.drive import drive_call
from milepost.runtime.guarded import refuse_plain
from milepost.runtime.map import check_map, map_calls, named_calls
from milepost.runtime.registry import register_call
from milepost.runtime.scope import Scope, current, here, on_a_loop
from milepost.runtime.start import Inputs, run_task, run_task_async
from milepost.runtime.surroundings import check_surroundings
from milepost.stores.contract import Store
from milepost.stores.locate import locate, open_store

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")
S = TypeVar("S", StepSpec, EffectSpec)


def _outside(name: str) -> None:
    """Refuse a call from a thread or child process that belongs to no run while one is active. Raises: OutsideRun."""
    refuse_strangers(name, is_active=bool(leases.active_runs()))


def _refuse_to_block(scope: Scope, path: str, **facts: str) -> None:
    """Refuse a synchronous call that would block a loop, unless the body's own task blocks it already.

    Raises: BlocksLoop.
    """
    if not on_a_loop():
        return
    body_is_async = scope.call.spec.is_async if scope.call is not None else scope.run.task.is_async
    if body_is_async or here() != scope.home:
        raise BlocksLoop(path=path, **facts)


def _look_like(wrapper: Any, function: Callable[..., Any]) -> None:
    functools.update_wrapper(wrapper, function)


class _Callable(Generic[S]):
    def __init__(self, spec: S) -> None:
        self.spec: S = spec
        _look_like(self, spec.function)
        register_call(spec)

    def __repr__(self) -> str:
        return f"<milepost {type(self).__name__.lower()} {self.spec.name}>"


def _spec_of(called: Callable[..., Any]) -> Any:
    """Return the declaration behind the `self` of a `.map`.

    There `self` is typed by its call: mypy does not solve `Step[[A], R]` for a parameter that has a name.
    """
    return called.spec  # type: ignore[attr-defined]


class Step(_Callable[StepSpec], Generic[P, R]):
    """A synchronous step: calling it inside a run ends at a checkpoint."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the step, or return its verified output. Raises: StepFailed, BlocksLoop on a running loop."""
        scope = current.get()
        if scope is None:
            _outside(self.spec.name)
            return self.spec.function(*args, **kwargs)  # type: ignore[no-any-return]
        _refuse_to_block(scope, self.spec.name, name=self.spec.name)
        return drive_call(scope.begin(self.spec, args, kwargs))  # type: ignore[no-any-return]

    def aio(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Run the step from an async task: its body in a thread, the loop stays free."""
        scope = current.get()
        if scope is None:
            _outside(self.spec.name)
            import asyncio

            return asyncio.to_thread(self.spec.function, *args, **kwargs)
        return awaitable(scope.begin(self.spec, args, kwargs))

    def map(self: Callable[[A], R], items: Iterable[A], *surplus: Never, concurrency: int = 1) -> list[R]:
        """Run the step for each item, each with its own checkpoint, at most `concurrency` at once; results in order."""
        spec, scope = _spec_of(self), current.get()
        check_map(spec, items, surplus, concurrency)
        if scope is None:
            _outside(spec.name)
            return [spec.function(item) for item in items]
        _refuse_to_block(scope, f"{spec.name}.map", name=spec.name, hint=BlocksLoop.of_map.format(name=spec.name))
        return map_calls(named_calls(scope, spec, items), concurrency)


class AsyncStep(_Callable[StepSpec], Generic[P, R]):
    """An asynchronous step."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Run the step, or return its verified output. It is named here, on the line that calls it."""
        scope = current.get()
        if scope is None:
            _outside(self.spec.name)
            return self.spec.function(*args, **kwargs)  # type: ignore[no-any-return]
        return awaitable(scope.begin(self.spec, args, kwargs))

    aio = __call__

    def map(
        self: Callable[[A], Coroutine[Any, Any, R]], items: Iterable[A], *surplus: Never, concurrency: int = 1
    ) -> Awaitable[list[R]]:
        """Run the step for each item, each with its own checkpoint, at most `concurrency` at once; results in order."""
        spec, scope = _spec_of(self), current.get()
        check_map(spec, items, surplus, concurrency)
        if scope is None:
            _outside(spec.name)
            return _plain_map(spec.function, items)
        return map_calls_async(named_calls(scope, spec, items), concurrency)


async def _plain_map(function: Callable[[A], Awaitable[R]], items: Iterable[A]) -> list[R]:
    return [await function(item) for item in items]


class Effect(_Callable[EffectSpec], Generic[P, R]):
    """A synchronous effect: one write to an outside system."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Send once, or return the recorded result. Raises: StepFailed, Declined, OutsideRun, BlocksLoop."""
        scope = _scope_for_effect(self.spec)
        _refuse_to_block(scope, self.spec.name, name=self.spec.name)
        return drive_call(scope.begin(self.spec, args, kwargs))  # type: ignore[no-any-return]

    def aio(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Send from an async task: the call in a thread, the loop stays free."""
        return awaitable(_scope_for_effect(self.spec).begin(self.spec, args, kwargs))

    def map(self: Callable[[A], R], items: Iterable[A], *surplus: Never, concurrency: int = 1) -> list[R]:
        """Send once for each item, at most `concurrency` at once; results in order. Needs key=."""
        spec = _spec_of(self)
        check_map(spec, items, surplus, concurrency)
        scope = _scope_for_effect(spec)
        _refuse_to_block(scope, f"{spec.name}.map", name=spec.name, hint=BlocksLoop.of_map.format(name=spec.name))
        return map_calls(named_calls(scope, spec, items), concurrency)

    def plain(self, key: Key, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself, deliberately: nothing is recorded, nothing protects it. Refused in a shadow run."""
        refuse_plain(self.spec.name)
        return unwrapped(self.spec.function(key, *args, **kwargs))  # type: ignore[no-any-return]


class AsyncEffect(_Callable[EffectSpec], Generic[P, R]):
    """An asynchronous effect."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Send once, or return the recorded result."""
        return awaitable(_scope_for_effect(self.spec).begin(self.spec, args, kwargs))

    aio = __call__

    def map(
        self: Callable[[A], Coroutine[Any, Any, R]], items: Iterable[A], *surplus: Never, concurrency: int = 1
    ) -> Awaitable[list[R]]:
        """Send once for each item, at most `concurrency` at once; results in order. Needs key=."""
        spec = _spec_of(self)
        check_map(spec, items, surplus, concurrency)
        return map_calls_async(named_calls(_scope_for_effect(spec), spec, items), concurrency)

    async def plain(self, key: Key, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself, deliberately: nothing is recorded, nothing protects it. Refused in a shadow run."""
        refuse_plain(self.spec.name)
        return unwrapped(await self.spec.function(key, *args, **kwargs))  # type: ignore[no-any-return]


def _scope_for_effect(spec: EffectSpec) -> Scope:
    scope = current.get()
    if scope is None:
        _outside(spec.name)
        raise OutsideRun(path=spec.name, reason="an effect needs a run that records it")
    return scope


# ── tasks ───────────────────────────────────────────────────────────────────────────────────────────


class _TaskBase:
    def __init__(self, spec: TaskSpec, options: RunOptions | None = None) -> None:
        self.spec = spec
        self._options = options or RunOptions()
        _look_like(self, spec.function)

    def __repr__(self) -> str:
        return f"<milepost task {self.spec.name}>"

    def _with(self, options: Options) -> RunOptions:
        """Return the options with others in their place. Raises: BadOption."""
        where = f"task {self.spec.name}, options("
        for name in options.keys() - Options.__annotations__.keys():
            known = ", ".join(Options.__annotations__)
            raise BadOption(where=f"{where}{name}=)", reason="there is no such option", hint=f"There are: {known}.")
        if not hasattr(store := options.get("store"), "create_run") and store is not None:
            reason = f"expected a store, found {type(store).__name__}"
            raise BadOption(where=f"{where}store=)", reason=reason, hint="To name a file, set MILEPOST_STORE.")
        return replace(self._options, **options)

    def _ready(self, *, create: bool) -> tuple[Store, RunOptions]:
        """Complete the options from the environment and open the store. Raises: as `check_surroundings` of a start."""
        environ, given = self._options.environ or os.environ, self._options.seal_key
        key = seal_key_in(environ) if given is None else checked_key(given, "option seal_key=")
        options = replace(self._options, environ=environ, seal_key=key)
        if create:
            check_surroundings(self.spec, environ)
        if options.store is not None:
            return options.store, options
        return default_store(create=create, environ=options.environ), options


class Task(_TaskBase, Generic[P, R]):
    """A synchronous task: the plan of steps in code."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the plan plainly, without a run: steps are plain functions, effects are refused."""
        return self.spec.function(*args, **kwargs)  # type: ignore[no-any-return]

    def run(self, run_id: str, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Start a run, or go on with the one of this id; return the task's result.

        Raises: QuestionError, RunWaiting, StepFailed, Declined, RefusedError, MisuseError, UnavailableError,
        RunInterrupted. Crash: whatever was recorded stands; the same call goes on from there.
        """
        store, options = self._ready(create=True)
        return run_task(self.spec, run_id, Inputs(args, kwargs), store, options)  # type: ignore[no-any-return]

    def resume(self, run_id: str, /) -> R:
        """Go on with a run that exists, with its recorded inputs. Raises: as `run`; RunUnknown, StoreMissing."""
        store, options = self._ready(create=False)
        return run_task(self.spec, run_id, None, store, options)  # type: ignore[no-any-return]

    def options(self, **options: Unpack[Options]) -> Task[P, R]:
        """Return this task with other run options (see RunOptions), such as `store=` or `wait=False`."""
        return Task(self.spec, self._with(options))


class AsyncTask(_TaskBase, Generic[P, R]):
    """An asynchronous task."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Call the plan plainly, without a run."""
        return self.spec.function(*args, **kwargs)  # type: ignore[no-any-return]

    async def run(self, run_id: str, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """As `Task.run`, on the running loop."""
        store, options = self._ready(create=True)
        return await run_task_async(self.spec, run_id, Inputs(args, kwargs), store, options)  # type: ignore[no-any-return]

    async def resume(self, run_id: str, /) -> R:
        """As `Task.resume`, on the running loop."""
        store, options = self._ready(create=False)
        return await run_task_async(self.spec, run_id, None, store, options)  # type: ignore[no-any-return]

    def options(self, **options: Unpack[Options]) -> AsyncTask[P, R]:
        """Return this task with other run options (see RunOptions)."""
        return AsyncTask(self.spec, self._with(options))


_STORES: dict[str, Store] = {}


def default_store(*, create: bool, environ: Mapping[str, str]) -> Store:
    """Return the store found from the working folder, opened once per process and file."""
    found = locate(Path.cwd(), environ)
    key = f"{os.getpid()} {found}"
    if found is None or key not in _STORES or not found.exists():
        store = open_store(create=create, environ=environ)
        key = f"{os.getpid()} {store.location}"
        _STORES[key] = store
    return _STORES[key]


# ── what a body may call ────────────────────────────────────────────────────────────────────────────


class Sleep:
    """`milepost.sleep(…)`, and `await milepost.sleep.aio(…)` in an async task: a durable wait."""

    def __call__(self, duration: timedelta | float, *, name: str = "sleep") -> None:
        """Wait so long, counted from the first time the plan came here: a restart neither resets nor shortens it.

        `duration` in seconds or as a timedelta. Raises: OutsideRun, BlocksLoop, RunWaiting through the door.
        """
        scope, spec, seconds = self._ready(duration, name)
        _refuse_to_block(scope, name, name="milepost.sleep")
        drive_call(scope.begin(spec, (seconds,), {}))

    def aio(self, duration: timedelta | float, *, name: str = "sleep") -> Coroutine[Any, Any, None]:
        """As a call, without blocking the loop."""
        scope, spec, seconds = self._ready(duration, name)
        return awaitable(scope.begin(spec, (seconds,), {}))

    def _ready(self, duration: timedelta | float, name: str) -> tuple[Scope, StepSpec, float]:
        seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
        if not is_number(seconds, 0, DURATION_MAX.total_seconds()):
            reason = f"expected a timedelta or seconds, from 0 to {DURATION_MAX.days:,} days, found {shown(duration)}"
            raise BadOption(where="milepost.sleep(duration)", reason=reason, hint="Correct the duration in the plan.")
        return here_or_refused(name), replace(declare.step_spec(_sleep, name=name), waits=True), float(seconds)


def _sleep(seconds: float) -> None:
    """Wait for a recorded time."""


sleep = Sleep()


class RunHandle:
    """The current run, for agents whose steps are only known while they run. One mechanism, two doors."""

    def __init__(self, scope: Scope) -> None:
        self.id = scope.run.run_id
        self.task = scope.run.task.name

    def step(self, name: str, function: Callable[P, R], /, **options: Any) -> Step[P, R]:
        """Return a step of this name: `run.step("summarise", summarise, verify=…)(text)`; `.aio` in an async task."""
        return Step(declare.step_spec(function, name=name, **options))

    def async_step(
        self, name: str, function: Callable[P, Coroutine[Any, Any, R]], /, **options: Any
    ) -> AsyncStep[P, R]:
        """As `step`, for an async function."""
        return AsyncStep(declare.step_spec(function, name=name, **options))

    def effect(self, name: str, function: Callable[Concatenate[Key, P], R], /, **options: Any) -> Effect[P, R]:
        """Return an effect of this name; options as for `@effect`."""
        return Effect(declare.effect_spec(function, name=name, **options))

    def async_effect(
        self, name: str, function: Callable[Concatenate[Key, P], Coroutine[Any, Any, R]], /, **options: Any
    ) -> AsyncEffect[P, R]:
        """As `effect`, for an async function."""
        return AsyncEffect(declare.effect_spec(function, name=name, **options))


def current_run() -> RunHandle:
    """Return the run this code belongs to. Raises: OutsideRun."""
    return RunHandle(here_or_refused("current_run()"))


def fork(run_id: str, /, *, from_step: str, to: str, store: Store | None = None) -> None:
    """End a run and begin run `to` of the same family, which keeps what was verified before `from_step`.

    Nothing applied in the family is sent again. Go on with `task.resume(to)`.
    `from_step` is the path of a step or an effect. A run is forked once, after that the newest of its family is.
    Raises: RunBusy while the run is held, RunUnknown, StepUnknown, AlreadyForked, SealKeyMissing, LeaseTaken, BadName
    when `to` is taken.
    Crash: the old run may be forked again, also into `to`; or the new one is there whole.
    """
    from milepost.runtime.fork import fork_run

    environ = dict(os.environ)
    fork_run(
        store or default_store(create=False, environ=environ),
        run_id,
        from_step,
        to,
        seal_key=seal_key_in(environ),
        clock=SystemClock(),
        environ=environ,
    )
