"""The decorators `@task`, `@step` and `@effect`, and what type checkers see of them.

An effect's first parameter is its Key: `Concatenate[Key, P]` shows callers the rest, and a lookup is checked
against the same shape. Options are documented where they are checked, in `declare`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, TypeAlias, TypeVar, overload

from milepost import declare
from milepost.api import AsyncEffect, AsyncStep, AsyncTask, Effect, Step, Task
from milepost.protocol.keys import Key
from milepost.protocol.limits import Limits
from milepost.protocol.outcomes import Applied, CannotTell, Found, NotFound
from milepost.protocol.policy import Retry
from milepost.runtime.registry import register_task

P = ParamSpec("P")
R = TypeVar("R")
Answer: TypeAlias = Found[Any] | NotFound | CannotTell
Name: TypeAlias = str | int
Naming: TypeAlias = (
    Callable[[Any], Name]
    | Callable[[Any, Any], Name]
    | Callable[[Any, Any, Any], Name]
    | Callable[[Any, Any, Any, Any], Name]
    | Callable[[Any, Any, Any, Any, Any], Name]
    | Callable[[Any, Any, Any, Any, Any, Any], Name]
)
"""A function of the arguments. Not `Callable[..., Name]`, with which strict pyright knows no lambda's parameters."""
Saying: TypeAlias = (
    str
    | Callable[[Any], str]
    | Callable[[Any, Any], str]
    | Callable[[Any, Any, Any], str]
    | Callable[[Any, Any, Any, Any], str]
    | Callable[[Any, Any, Any, Any, Any], str]
    | Callable[[Any, Any, Any, Any, Any, Any], str]
)
"""A format string, or a function of the arguments."""
Errors: TypeAlias = type[Exception] | tuple[type[Exception], ...]


class _Decorator:
    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options


class _StepDecorator(_Decorator):
    """What `@step(…)` returns: turns a function into a step."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]]) -> AsyncStep[P, R]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, function: Callable[P, R]) -> Step[P, R]: ...
    def __call__(self, function: Callable[..., Any]) -> Any:
        spec = declare.step_spec(function, **self._options)
        return AsyncStep(spec) if spec.is_async else Step(spec)


class _EffectDecorator(_Decorator):
    """What `@effect(…)` returns: turns a function whose first parameter is a Key into an effect."""

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[Concatenate[Key, P], Coroutine[Any, Any, Applied[R]]]
    ) -> AsyncEffect[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Key, P], Coroutine[Any, Any, R]]) -> AsyncEffect[P, R]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, function: Callable[Concatenate[Key, P], Applied[R]]) -> Effect[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Key, P], R]) -> Effect[P, R]: ...
    def __call__(self, function: Callable[..., Any]) -> Any:
        spec = declare.effect_spec(function, **self._options)
        return AsyncEffect(spec) if spec.is_async else Effect(spec)


class _TaskDecorator(_Decorator):
    """What `@task(…)` returns: turns a function into a task."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]]) -> AsyncTask[P, R]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, function: Callable[P, R]) -> Task[P, R]: ...
    def __call__(self, function: Callable[..., Any]) -> Any:
        spec = declare.task_spec(function, **self._options)
        register_task(spec)
        return AsyncTask(spec) if spec.is_async else Task(spec)


@overload
def step(function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncStep[P, R]: ...  # type: ignore[overload-overlap]
@overload
def step(function: Callable[P, R], /) -> Step[P, R]: ...
@overload
def step(
    *,
    name: str | None = None,
    verify: Callable[..., object] | Sequence[Callable[..., object]] = (),
    next: str = "",
    sources: Sequence[object] = (),
    unwatched: Sequence[str] = (),
    writes: Sequence[str] = (),
    key: Naming | None = None,
    retry: Retry | None = None,
    version: str | None = None,
    why: Literal["", "expensive", "depended_on", "review"] = "",
    reads: Iterable[str | Path] = (),
    approve: Literal["", "before"] = "",
    review: Literal["", "after"] = "",
    approvers: Sequence[str] | None = None,
    approvals: int = 1,
    approval_expires: timedelta | None = None,
    summary: Saying | None = None,
) -> _StepDecorator: ...
def step(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function a step: calling it inside a run ends at a checkpoint.

    verify: functions that get the output and, by name, inputs; False, a sentence or an exception fails it.
    next: the next action, one plain sentence. sources: what else it reads (paths, Sql, Http, Folder, functions).
    writes: path parameters it changes. unwatched: parameters that are not compared. key: names the call by its
    arguments. retry: the policy; without one no exception is retried. why: why this is a checkpoint.
    reads: what it may reach in a shadow run (hosts, paths, `program:NAME`).
    approve: "before" asks people before the body runs. review: "after" asks them to look at the verified output before
    its checkpoint. approvers, approvals, approval_expires, summary: as on an effect.
    Raises: BadOption, BadName, NotEncodable, at declaration.
    """
    decorator = _StepDecorator(options)
    return decorator if function is None else decorator(function)


@overload
def effect(  # type: ignore[overload-overlap]
    function: Callable[Concatenate[Key, P], Coroutine[Any, Any, Applied[R]]], /
) -> AsyncEffect[P, R]: ...
@overload
def effect(function: Callable[Concatenate[Key, P], Coroutine[Any, Any, R]], /) -> AsyncEffect[P, R]: ...  # type: ignore[overload-overlap]
@overload
def effect(function: Callable[Concatenate[Key, P], Applied[R]], /) -> Effect[P, R]: ...
@overload
def effect(function: Callable[Concatenate[Key, P], R], /) -> Effect[P, R]: ...
@overload
def effect(
    *,
    name: str | None = None,
    key: Naming | None = None,
    lookup: Callable[..., Answer | Coroutine[Any, Any, Answer]] | None = None,
    settle: timedelta | None = None,
    key_lifetime: timedelta | None = None,
    retry: Retry | None = None,
    rejected: Errors = (),
    ref: Callable[[Any], str | None] | None = None,
    permission: str | None = None,
    provider: str = "",
    next: str = "",
    unwatched: Sequence[str] = (),
    version: str | None = None,
    scope: Literal["run", "task"] = "run",
    shadow: object = ...,
    approve: Literal["", "before"] = "",
    approvers: Sequence[str] | None = None,
    approvals: int = 1,
    approval_expires: timedelta | None = None,
    summary: Saying | None = None,
) -> _EffectDecorator: ...
def effect(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function whose first parameter is a Key an effect: one write to an outside system.

    lookup: asks the provider for the key and answers Found, NotFound or CannotTell; needs settle, how long after a
    call it may still arrive. key_lifetime: how long the provider keeps keys. rejected: exceptions that prove that
    nothing happened. ref: the provider's reference id in a result. permission: what the task must hold.
    scope="task": the key is shared by all runs of the task. shadow: the result in a shadow run, which sends nothing; a
    value or a function of the arguments.
    approve: "before" asks people before each request is sent. approvers: names, users or groups who may answer; anybody
    but the agent without. approvals: how many must. approval_expires: how long one holds until it is used. summary: one
    plain sentence, as a format string or a function of the arguments. Raises: BadOption, BadName, NotEncodable.
    """
    decorator = _EffectDecorator(options)
    return decorator if function is None else decorator(function)


@overload
def task(function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncTask[P, R]: ...  # type: ignore[overload-overlap]
@overload
def task(function: Callable[P, R], /) -> Task[P, R]: ...
@overload
def task(
    *,
    name: str | None = None,
    instructions: str | Path | None = None,
    model: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    tools: Iterable[object] = (),
    permissions: Iterable[str] | None = None,
    version: str | None = None,
    on_version_change: Literal["record", "ask"] = "record",
    reads: Iterable[str | Path] = (),
    shadow_first: int = 0,
    agreement: float = 1.0,
    limits: Limits | None = None,
) -> _TaskDecorator: ...
def task(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function a task: the plan of steps in code, with its instructions, model, tools and permissions.

    on_version_change: "record" notes changed versions and goes on, "ask" asks a person. limits: what one run may use
    before a person is asked. reads: what its code may reach in a shadow run. shadow_first: so many shadow runs in a row
    must agree, each to the share `agreement`, and a person promote it, before it runs live; only as it was promoted.
    Raises: BadOption, BadName, NotEncodable, at declaration.
    """
    decorator = _TaskDecorator(options)
    return decorator if function is None else decorator(function)
