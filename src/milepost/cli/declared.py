"""What a declaration says in words: why a step is a checkpoint, what verifies it, what an effect does in doubt. Pure.

The words for doubt are the table of the design (§5, An open intent). Called by `map`.
"""

from __future__ import annotations

import inspect
from pathlib import PurePath
from typing import Any

from milepost.cli.inputs import type_name
from milepost.protocol.approving import Approving
from milepost.protocol.policy import KEY_MARGIN, STARTS_MAX, Retry
from milepost.protocol.spec import EffectSpec, StepSpec, TaskSpec
from milepost.records.annotations import function_annotations
from milepost.sources import name_of
from milepost.views.limits import limit_words
from milepost.views.words import counted, lasting

WHY = {
    "": "its output is not made again on a resume",
    "expensive": "making its output again is expensive",
    "depended_on": "later steps depend on its output",
    "review": "a person wants to review its output",
}


def task_object(task: TaskSpec) -> dict[str, Any]:
    """Return what a task declares about itself."""
    parameters = inspect.signature(task.function).parameters.values()
    hints = function_annotations(task.function, where=f"task {task.name}")
    return {
        "task": task.name,
        "target": task.target,
        "about": task.doc.splitlines(),
        "inputs": [_input(parameter, hints.get(parameter.name, Any)) for parameter in parameters],
        "output": _output(task),
        "versions": [f"{name} {value}" for name, value in task.versions().items()],
        "instructions": task.options.get("instructions"),
        "permissions": sorted(task.permissions or ()),
        "on_version_change": task.on_version_change,
        "limits": limit_words(task.limits),
        "reads": [str(read) for read in task.reads],
        "live_after": live_after(task),
    }


def live_after(task: TaskSpec) -> str:
    """Say what a task asks for before it runs live; empty when nothing."""
    if not task.shadow_first:
        return ""
    agree = "agrees" if task.shadow_first == 1 else "agree"
    return f"{counted(task.shadow_first, 'shadow run')} that {agree} to {task.agreement:.2%}, and a promotion"


def _input(parameter: inspect.Parameter, hint: Any) -> str:
    value = str(parameter.default) if isinstance(parameter.default, PurePath) else repr(parameter.default)
    default = "" if parameter.default is parameter.empty else f" = {value}"
    return f"{parameter.name}: {type_name(hint)}{default}"


def _output(spec: TaskSpec | StepSpec | EffectSpec) -> str:
    annotation = inspect.signature(spec.function).return_annotation
    if annotation is inspect.Signature.empty:
        return "JSON"
    return annotation if isinstance(annotation, str) else type_name(annotation)


def call_object(spec: StepSpec | EffectSpec) -> dict[str, Any]:
    """Return what a step or an effect declares, its facts as sentences by name."""
    kind = "effect" if isinstance(spec, EffectSpec) else "step"
    facts = _effect_facts(spec) if isinstance(spec, EffectSpec) else _step_facts(spec)
    facts |= _approval_facts(spec.approving)
    facts["named by"] = "its key=" if spec.key is not None else "its place in the plan"
    facts["when it fails"] = retry_words(spec.retry, is_effect=kind == "effect")
    facts["next"] = spec.next_action
    facts["versions"] = ", ".join(f"{name} {value}" for name, value in spec.versions.items())
    return {
        "kind": kind,
        "name": spec.name,
        "where": spec.where,
        "about": spec.doc,
        "output": _output(spec),
        "is_async": spec.is_async,
        "facts": {name: value for name, value in facts.items() if value},
    }


def _approval_facts(rule: Approving | None) -> dict[str, str]:
    if rule is None:
        return {}
    words = rule.in_words()
    return {
        "approval": f"before it happens {words}" if rule.before else "",
        "review": f"of its output, before its checkpoint, {words}" if rule.after else "",
    }


def _step_facts(step: StepSpec) -> dict[str, str]:
    return {
        "a checkpoint because": WHY[step.why],
        "verified by": ", ".join(verifier.name for verifier in step.verifiers) or "nothing",
        "reads": ", ".join(name_of(dict(descriptor)) for descriptor in step.sources),
        "writes": ", ".join(step.writes),
        "may reach in a shadow run": ", ".join(map(str, step.reads)),
    }


def _effect_facts(effect: EffectSpec) -> dict[str, str]:
    return {
        "a checkpoint because": "it writes outside",
        "provider": effect.provider,
        "needs permission": effect.permission or "",
        "key": "one for all runs of the task" if effect.scope == "task" else "one for this family of runs",
        "proof that nothing happened": ", ".join(["NotApplied", *(kind.__name__ for kind in effect.rejected)]),
        "in doubt": doubt_words(effect),
        "in a shadow run": "not sent; its shadow= supplies the result"
        if effect.shadow
        else "not sent; a person gives the result",
    }


def doubt_words(effect: EffectSpec) -> str:
    """Say what happens to an open intent of this effect."""
    lifetime = effect.key_lifetime
    if effect.lookup is not None:
        settle = effect.settle.total_seconds() if effect.settle else 0.0
        name = getattr(effect.lookup, "__name__", "its lookup")
        return (
            f"{lasting(settle)} after the call can last have arrived, {name} asks the provider: found, it is applied; "
            "not found, the recorded request is sent again with the same key; cannot tell, "
            + ("the key's lifetime decides, then a person is asked" if lifetime else "a person is asked")
        )
    if lifetime is not None:
        trusted = max((lifetime - KEY_MARGIN).total_seconds(), 0.0)
        return (
            f"within {lasting(trusted)} of the first send the recorded request is sent again with the same key; "
            "after that a person is asked"
        )
    return "a person is asked at once: nobody guesses"


def retry_words(retry: Retry | None, *, is_effect: bool) -> str:
    """Say a retry policy in one sentence."""
    if retry is None:
        return f"the run ends failed and a resume starts it again; after {STARTS_MAX} starts a person is asked"
    kinds = retry.on if isinstance(retry.on, tuple) else (retry.on,)
    names = ", ".join(kind.__name__ for kind in kinds)
    then = "a person is asked" if retry.then == "ask" else "the plan gets StepFailed"
    first, longest = lasting(retry.first_wait.total_seconds()), lasting(retry.longest_wait.total_seconds())
    deadline = f", at most {lasting(retry.deadline.total_seconds())} in all" if retry.deadline else ""
    doubt = ", each time after its doubt is settled" if is_effect else ""
    return f"{names}: up to {retry.attempts} starts, {first} apart growing to {longest}{deadline}{doubt}; then {then}"


def warnings(task: TaskSpec, spec: StepSpec | EffectSpec) -> list[str]:
    """Return what a declaration leaves out that a long task will miss: one line for each step and effect."""
    missing = _missing(task, spec)
    kind = "effect" if isinstance(spec, EffectSpec) else "step"
    return [f"{kind} {spec.name} {'; '.join(missing)}"] if missing else []


def _missing(task: TaskSpec, spec: StepSpec | EffectSpec) -> list[str]:
    found = []
    needed = spec.permission if isinstance(spec, EffectSpec) else None
    if needed is not None and needed not in (task.permissions or ()):
        held = "names no permissions" if task.permissions is None else "does not hold it"
        found.append(f"needs the permission {needed!r}, the task {held}: every call is refused")
    if isinstance(spec, EffectSpec) and spec.lookup is None and spec.key_lifetime is None:
        found.append("has neither lookup= nor key_lifetime=: each doubt stops the run and asks")
    if isinstance(spec, StepSpec) and not spec.verifiers:
        found.append("has no verify=: whatever it returns counts as verified")
    if not spec.output.typed:
        found.append("has no return annotation: only exact JSON values pass")
    if not spec.next_action:
        found.append("has no next=: its checkpoint does not say what comes next")
    return found
