"""`milepost map`: a task's role definition, from its declarations, without running it."""

from __future__ import annotations

from typing import Any

import click

from milepost.cli.declared import call_object, task_object, warnings
from milepost.cli.load import AnyTask, load_task
from milepost.cli.options import TEXT, json_option
from milepost.cli.output import emit, say
from milepost.protocol.spec import EffectSpec, StepSpec
from milepost.runtime.registry import declared_calls
from milepost.runtime.role import named_calls


@click.command("map")
@click.argument("target", type=TEXT, metavar="FILE_OR_MODULE:TASK")
@json_option
def command(target: str, as_json: bool) -> int:
    """Print a task's role definition: its steps, effects, checks, permissions and versions. Runs nothing of it.

    It warns of an effect with neither lookup nor key lifetime, a step without a verifier, an untyped output and a
    missing next action.

    \b
    Example:
      milepost map plan.py:reconcile
    """
    task = load_task(target)
    calls = declared_for(task)
    order = {id(spec): number for number, spec in enumerate(named_calls(task.spec.function), 1)}
    found = {
        **task_object(task.spec),
        "calls": [{**call_object(call), "named_at": order.get(id(call))} for call in calls],
        "warnings": [warning for call in calls for warning in warnings(task.spec, call)],
    }
    if as_json:
        emit(found)
    else:
        _say(found)
    return 0


def declared_for(task: AnyTask) -> list[StepSpec | EffectSpec]:
    """Return the steps and effects of the task's module, and those its body names from other modules."""
    function: Any = task.spec.function
    found = {id(spec): spec for spec in declared_calls(function.__module__)}
    for spec in named_calls(function):
        found.setdefault(id(spec), spec)
    return list(found.values())


def _say(found: dict[str, Any]) -> None:
    say(f"task {found['task']} ({found['target']})")
    for line in found["about"]:
        say(f"  {line}")
    for name in ("inputs", "output", "versions", "permissions", "limits", "reads", "live_after"):
        if name in ("reads", "live_after") and not found[name]:
            continue
        say(f"{name}: {found[name]}" if isinstance(found[name], str) else f"{name}: {', '.join(found[name]) or 'none'}")
    for call in found["calls"]:
        say()
        say(f"{call['kind']} {call['name']} → {call['output']}" + (f": {call['about']}" if call["about"] else ""))
        for name, value in call["facts"].items():
            say(f"  {name}: {value}")
    say()
    for warning in found["warnings"]:
        say(f"warning: {warning}")
    if not found["warnings"]:
        say("no warnings")
