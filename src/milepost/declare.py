"""From a decorated function and its options to a spec: everything is checked here, before anything runs.

Called by `decorators` and `api`. Raises: BadOption, BadName, NotEncodable, each naming the function and the option.
"""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal

from milepost.errors import BadName, BadOption
from milepost.protocol.amounts import checked_duration, is_number
from milepost.protocol.approving import approving
from milepost.protocol.limits import Limits
from milepost.protocol.options import (
    check_callable,
    check_key_parameter,
    check_texts,
    declared_name,
    listed,
    names_given,
    refuse_generator,
    refuse_unknown,
)
from milepost.protocol.outcomes import Applied
from milepost.protocol.policy import Retry
from milepost.protocol.reads import declared_reads
from milepost.protocol.spec import EffectSpec, StepSpec, TaskSpec, Verifier
from milepost.records.annotations import function_annotations
from milepost.records.arguments import ArgumentsCodec
from milepost.records.codec import Codec
from milepost.versions import code_versions, task_versions

Function = Callable[..., Any]
_WHY = ("", "expensive", "depended_on", "review")
OWN_TASKS = "milepost-"
"""Begins the names of Milepost's own tasks, such as those that keep comparisons and promotions."""


def step_spec(
    function: Function,
    *,
    name: str | None = None,
    verify: Any = (),
    next: str = "",
    sources: Sequence[Any] = (),
    unwatched: Sequence[str] = (),
    writes: Sequence[str] = (),
    key: Function | None = None,
    retry: Retry | None = None,
    version: str | None = None,
    why: str = "",
    reads: Iterable[Any] = (),
    review: str = "",
    **people: Any,
) -> StepSpec:
    """Check and gather what `@step` was given; `people` is what `approving` takes."""
    common = _common(function, "step", name, next, unwatched, key, retry, version, skip_first=False)
    where = f"step {common['name']}"
    refuse_unknown(where, people.keys() - _PEOPLE)
    if why not in _WHY:
        raise BadOption(where=f"{where}, why=", reason=f"expected one of {', '.join(_WHY[1:])}, found {why!r}")
    writes = names_given(where, "writes", writes)
    _check_parameters(where, "writes", writes, common["arguments"])
    return StepSpec(
        **common,
        verifiers=_verifiers(where, verify, common["arguments"], common["is_async"]),
        sources=tuple(_descriptor(where, source) for source in listed(where, "sources", sources)),
        writes=tuple(writes),
        why=why,
        reads=declared_reads(where, reads),
        approving=approving(where, common["arguments"], review=review, **people),
    )


def effect_spec(
    function: Function,
    *,
    name: str | None = None,
    key: Function | None = None,
    lookup: Function | None = None,
    settle: timedelta | None = None,
    key_lifetime: timedelta | None = None,
    retry: Retry | None = None,
    rejected: Any = (),
    ref: Function | None = None,
    permission: str | None = None,
    provider: str = "",
    next: str = "",
    unwatched: Sequence[str] = (),
    version: str | None = None,
    scope: Literal["run", "task"] = "run",
    shadow: Any = ...,
    **people: Any,
) -> EffectSpec:
    """Check and gather what `@effect` was given; `people` is what `approving` takes."""
    common = _common(function, "effect", name, next, unwatched, key, retry, version, skip_first=True)
    where = f"effect {common['name']}"
    refuse_unknown(where, people.keys() - _PEOPLE - {"review"})
    if "review" in people:
        raise BadOption(where=f"{where}, review=", reason='an effect is done when it is sent: write approve="before"')
    _check_lookup(where, lookup, settle, common["is_async"])
    check_callable(where, "ref", ref)
    if key_lifetime is not None:
        checked_duration(f"{where}, key_lifetime=", key_lifetime)
    _check_scope(where, scope, key)
    check_texts(where, provider=provider, permission=permission)
    return EffectSpec(
        **common,
        provider=provider or common["where"],
        lookup=lookup,
        settle=settle,
        key_lifetime=key_lifetime,
        rejected=_exceptions(where, rejected),
        ref=ref,
        permission=permission,
        scope=scope,
        shadow=_supplier(where, function, shadow, common["output"]),
        approving=approving(where, common["arguments"], **people),
    )


def _check_lookup(where: str, lookup: Function | None, settle: timedelta | None, is_async: bool) -> None:
    if lookup is not None and settle is None:
        reason = "settle= is missing: how long after a call it may still arrive"
        raise BadOption(where=f"{where}, lookup=", reason=reason)
    check_callable(where, "lookup", lookup)
    if settle is not None:
        checked_duration(f"{where}, settle=", settle, least=timedelta(0))
    if lookup is not None and inspect.iscoroutinefunction(lookup) and not is_async:
        raise BadOption(where=f"{where}, lookup=", reason="an async lookup needs an async effect")


def _check_scope(where: str, scope: str, key: Function | None) -> None:
    if scope not in ("run", "task"):
        raise BadOption(where=f"{where}, scope=", reason=f'expected "run" or "task", found {scope!r}')
    if scope == "task" and key is None:
        raise BadOption(where=f"{where}, scope=", reason='scope="task" needs key=, which names the thing across runs')


def task_spec(
    function: Function,
    *,
    name: str | None = None,
    instructions: str | Path | None = None,
    model: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    tools: Iterable[Any] = (),
    permissions: Iterable[str] | None = None,
    version: str | None = None,
    on_version_change: Literal["record", "ask"] = "record",
    reads: Iterable[Any] = (),
    shadow_first: int = 0,
    agreement: float = 1.0,
    limits: Limits | None = None,
    **unknown: Any,
) -> TaskSpec:
    """Check and gather what `@task` was given."""
    checked = _task_name(function, name)
    where = f"task {checked}"
    refuse_unknown(where, unknown)
    refuse_generator(function, where)
    if on_version_change not in ("record", "ask"):
        raise BadOption(
            where=f"{where}, on_version_change=", reason=f'expected "record" or "ask", found {on_version_change!r}'
        )
    if instructions is not None and not isinstance(instructions, (str, Path)):
        raise BadOption(where=f"{where}, instructions=", reason=f"expected a text or a Path, found {instructions!r}")
    if parameters is not None and not isinstance(parameters, Mapping):
        raise BadOption(where=f"{where}, parameters=", reason=f"expected a dict, found {parameters!r}")
    if limits is not None and not isinstance(limits, Limits):
        raise BadOption(where=f"{where}, limits=", reason=f"expected Limits(…), found {limits!r}")
    check_texts(where, model=model, version=version)
    own = code_versions(function, version)
    return TaskSpec(
        name=checked,
        function=function,
        is_async=inspect.iscoroutinefunction(function),
        arguments=ArgumentsCodec(function, skip_first=False, unwatched=(), where=f"{where}, inputs"),
        output=_output(function, where),
        target=_target(function),
        where=_where(function),
        doc=inspect.getdoc(function) or "",
        versions=partial(task_versions, where, own, instructions, model, parameters, listed(where, "tools", tools)),
        permissions=None if permissions is None else frozenset(names_given(where, "permissions", permissions)),
        on_version_change=on_version_change,
        reads=declared_reads(where, reads),
        **_threshold(where, shadow_first, agreement),
        limits=limits,
        options={"instructions": str(instructions) if isinstance(instructions, Path) else None, "model": model},
    )


def _task_name(function: Function, name: str | None) -> str:
    """Return the name of a task. Ours are kept from others: what they recorded lets tasks run live."""
    checked = declared_name("task", function, name)
    if checked.startswith(OWN_TASKS) and function.__module__.partition(".")[0] != "milepost":
        raise BadName(
            what="task",
            name=checked,
            reason=f"names that begin with {OWN_TASKS!r} are kept for Milepost's own tasks",
            hint="Give the task another name=.",
        )
    return checked


def _threshold(where: str, shadow_first: int, agreement: float) -> dict[str, Any]:
    """Check what a task asks for before it may run live. Raises: BadOption."""
    if isinstance(shadow_first, bool) or not isinstance(shadow_first, int) or shadow_first < 0:
        raise BadOption(where=f"{where}, shadow_first=", reason=f"expected 0, 1, 2, …, found {shadow_first!r}")
    if not is_number(agreement, 0, 1) or not agreement:
        raise BadOption(where=f"{where}, agreement=", reason=f"expected more than 0, at most 1, found {agreement!r}")
    return {"shadow_first": shadow_first, "agreement": float(agreement)}


# ── what steps and effects have in common ───────────────────────────────────────────────────────────


def _common(
    function: Function,
    kind: str,
    name: str | None,
    next_action: str,
    unwatched: Sequence[str],
    key: Function | None,
    retry: Retry | None,
    version: str | None,
    *,
    skip_first: bool,
) -> dict[str, Any]:
    checked = declared_name(kind, function, name)
    where = f"{kind} {checked}"
    refuse_generator(function, where)
    check_callable(where, "key", key)
    unwatched = names_given(where, "unwatched", unwatched)
    check_texts(where, next=next_action, version=version)
    if retry is not None and not isinstance(retry, Retry):
        raise BadOption(where=f"{where}, retry=", reason=f"expected Retry(on=…), found {retry!r}")
    if skip_first:
        check_key_parameter(function, where)
    return {
        "name": checked,
        "function": function,
        "is_async": inspect.iscoroutinefunction(function),
        "arguments": ArgumentsCodec(function, skip_first=skip_first, unwatched=unwatched, where=f"{where}, arguments"),
        "output": _output(function, where),
        "key": key,
        "retry": retry,
        "next_action": next_action,
        "versions": code_versions(function, version),
        "where": _where(function),
        "doc": (inspect.getdoc(function) or "").partition("\n")[0],
    }


_PEOPLE = inspect.signature(approving).parameters.keys()


def _output(function: Function, where: str) -> Codec[Any]:
    annotation = function_annotations(function, where=where).get("return", Any)
    if typing.get_origin(annotation) is Applied:
        annotation = typing.get_args(annotation)[0]
    return Codec(annotation, where=f"{where}, return value")


def _where(function: Function) -> str:
    return f"{function.__module__}:{function.__qualname__}"


def _target(function: Function) -> str:
    """Return how to import a task again: the file of a script, else the module."""
    module = sys.modules.get(function.__module__)
    file = getattr(module, "__file__", None)
    if file and "<locals>" not in function.__qualname__:
        return f"{Path(file).resolve()}:{function.__qualname__}"
    return _where(function)


def _check_parameters(where: str, option: str, names: Sequence[str], arguments: ArgumentsCodec) -> None:
    unknown = [name for name in names if name not in arguments.watched]
    if unknown:
        known = ", ".join(arguments.watched) or "none"
        raise BadOption(where=f"{where}, {option}=", reason=f"{unknown[0]!r} is not among its parameters: {known}")


def _descriptor(where: str, source: Any) -> Mapping[str, Any]:
    if hasattr(source, "descriptor"):
        return dict(source.descriptor())
    if isinstance(source, (str, Path)):
        return {"kind": "path", "path": str(source)}
    if callable(source):
        from milepost.sources import Call

        return Call(source).descriptor()
    raise BadOption(where=f"{where}, sources=", reason=f"expected a source, a path or a function, found {source!r}")


def _verifiers(where: str, verify: Any, arguments: ArgumentsCodec, is_async: bool) -> tuple[Verifier, ...]:
    given = verify if isinstance(verify, (list, tuple)) else (verify,)
    return tuple(_verifier(where, check, arguments, is_async) for check in given)


def _verifier(where: str, check: Any, arguments: ArgumentsCodec, is_async: bool) -> Verifier:
    if not callable(check):
        raise BadOption(where=f"{where}, verify=", reason=f"expected functions, found {check!r}")
    if inspect.iscoroutinefunction(check) and not is_async:
        raise BadOption(where=f"{where}, verify=", reason="an async verifier needs an async step")
    name = getattr(check, "name", None) or getattr(check, "__name__", type(check).__name__)
    declared = getattr(check, "inputs", None)
    if declared is None:
        parameters = list(inspect.signature(check).parameters.values())[1:]
        named = [p for p in parameters if p.kind is not p.VAR_KEYWORD]
        declared = tuple(p.name for p in named if p.default is p.empty or p.name in arguments.watched)
    _check_parameters(where, f"verify={name}, inputs", declared, arguments)
    return Verifier(str(name), check, tuple(declared))


def _exceptions(where: str, given: Any) -> tuple[type[BaseException], ...]:
    kinds = given if isinstance(given, tuple) else (given,)
    if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        raise BadOption(where=f"{where}, rejected=", reason=f"expected exception classes, found {given!r}")
    return kinds


def _supplier(where: str, function: Function, given: Any, output: Codec[Any]) -> Function | None:
    """Return what supplies an effect's result in a shadow run: `...` is nothing given. Raises: BadOption, NotEncodable.

    A plain value stands for itself; an effect whose annotation is None needs none.
    """
    if given is ...:
        annotation = function_annotations(function, where=where).get("return", Any)
        return _nothing if annotation in (None, type(None), Applied[None]) else None
    if not callable(given):
        output.round_trip(given)
        return lambda *_, **__: given
    if inspect.iscoroutinefunction(given):
        raise BadOption(where=f"{where}, shadow=", reason="expected a plain function, found an async one")
    expected, found = list(inspect.signature(function).parameters)[1:], inspect.signature(given)
    if not _takes(found, expected):
        raise BadOption(
            where=f"{where}, shadow=", reason=f"expected a function of ({', '.join(expected)}), found one of {found}"
        )
    return given  # type: ignore[no-any-return]


def _nothing(*_: object, **__: object) -> None:
    """Stand in for an effect that returns None."""


def _takes(found: inspect.Signature, expected: list[str]) -> bool:
    try:
        found.bind(*expected)
    except TypeError:
        return any(p.kind is p.KEYWORD_ONLY for p in found.parameters.values())
    return True
