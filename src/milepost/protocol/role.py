"""The role definition as facts, by task, step and effect: what a promotion binds, and what differs from it. Pure.

A call is known by what a shadow run records of it; one that the plan names is known by all it declares. Called by
`runtime.promoted` before a live run begins or goes on, and by the protocol before a call begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from milepost.protocol.asking import asking
from milepost.protocol.call import Call
from milepost.protocol.keys import name_in
from milepost.protocol.ops import Steps
from milepost.protocol.policy import Retry
from milepost.protocol.snapshot import Snapshot
from milepost.protocol.spec import EffectSpec, StepSpec, TaskSpec, changed_versions, own_versions
from milepost.protocol.versions import SINCE_PROMOTION, accepted_role
from milepost.records.canonical import canonical
from milepost.records.model import QuestionKind

TASK = "task"
_POLICY = ("permissions", "limits", "reads", "shadow_first", "agreement")
KNOWN_MAX = 1000
"""Declarations that were compared already and are remembered as promoted."""

Facts: TypeAlias = dict[str, str]
Role: TypeAlias = dict[str, Facts]


def role_of(task: TaskSpec, calls: Iterable[StepSpec | EffectSpec]) -> Role:
    """Return the role definition: of the task, and of each step and effect its plan names."""
    role = {TASK: _task_facts(task)}
    for spec in calls:
        known = role.setdefault(label(spec), declared_facts(spec))
        if known != (found := declared_facts(spec)):  # two of one name: the role is both
            both = {name: sorted({known.get(name, ""), found.get(name, "")}) for name in {*known, *found}}
            role[label(spec)] = {name: " or ".join(values) for name, values in both.items()}
    return role


def _task_facts(task: TaskSpec) -> Facts:
    facts = {
        "permissions": ", ".join(sorted(task.permissions or ())),
        "limits": canonical(task.limits.to_json()).decode() if task.limits is not None else "",
        "reads": ", ".join(map(str, task.reads)),
        "shadow_first": str(task.shadow_first),
        "agreement": str(task.agreement),
    }
    return dict(task.versions()) | {name: value for name, value in facts.items() if value}


def label(spec: StepSpec | EffectSpec) -> str:
    """Return what a call is called in a role: `effect pay`."""
    return f"{'effect' if isinstance(spec, EffectSpec) else 'step'} {spec.name}"


def called_facts(spec: StepSpec | EffectSpec) -> Facts:
    """Return what a shadow run records of a declaration."""
    if isinstance(spec, StepSpec):
        return _step_facts(spec.versions, spec.checks)
    approval = spec.approving.in_words() if spec.approving is not None and spec.approving.before else ""
    return _effect_facts(spec.versions, spec.provider, spec.permission, approval)


def _step_facts(versions: Mapping[str, Any], checks: Iterable[str]) -> Facts:
    return own_versions(versions) | ({"verified by": said} if (said := ", ".join(checks)) else {})


def _effect_facts(versions: Mapping[str, Any], provider: str, permission: str | None, approval: str) -> Facts:
    facts = {"provider": provider, "permission": permission or "", "approval": approval}
    return own_versions(versions) | {name: value for name, value in facts.items() if value}


def declared_facts(spec: StepSpec | EffectSpec) -> Facts:
    """Return all that a declaration says of what happens and who allows it."""
    rule = spec.approving
    facts = {
        "approval": rule.in_words() if rule is not None and rule.before else "",
        "review": rule.in_words() if rule is not None and rule.after else "",
        "unwatched": ", ".join(name for name in spec.arguments.parameters if name not in spec.arguments.watched),
        "named by": "key=" if spec.key is not None else "",
        "retry": _retry(spec.retry),
    }
    if isinstance(spec, EffectSpec):
        facts |= {
            "scope": spec.scope,
            "lookup": getattr(spec.lookup, "__name__", "lookup=") if spec.lookup is not None else "",
            "settle": str(spec.settle) if spec.settle is not None else "",
            "key_lifetime": str(spec.key_lifetime) if spec.key_lifetime is not None else "",
            "rejected": ", ".join(kind.__name__ for kind in spec.rejected),
        }
    else:
        facts |= {"writes": ", ".join(spec.writes), "reads": ", ".join(map(str, spec.reads))}
    return called_facts(spec) | {name: value for name, value in facts.items() if value}


def _retry(retry: Retry | None) -> str:
    if retry is None:
        return ""
    kinds = retry.on if isinstance(retry.on, tuple) else (retry.on,)
    return f"{', '.join(kind.__name__ for kind in kinds)}: {retry.attempts} starts, then {retry.then}"


def calls_of(s: Snapshot) -> Role:
    """Return what a shadow run called, as its journal says."""
    found: Role = {}
    for path, state in s.steps.items():
        if state.verified is not None:
            _add(found, f"step {name_in(path)}", _step_facts(state.verified.versions, state.verified.checks))
    for effect in s.effects.values():
        if (noted := effect.shadowed) is not None:
            facts = _effect_facts(noted.versions, noted.provider, noted.permission, noted.would_ask)
            _add(found, f"effect {noted.effect}", facts)
    return found


def _add(found: Role, name: str, facts: Facts) -> None:
    if found.setdefault(name, facts) != facts:  # of one name, made at run time of different functions
        found[f"{name} of code {facts['code']}"] = facts


def versions_in(role: Role) -> Facts:
    """Return the versions of the task itself: what its runs record at their start."""
    return {name: value for name, value in role[TASK].items() if name not in _POLICY}


def is_of(called: Role, role: Role, seen: Role) -> bool:
    """Say whether a shadow run called what the role declares, and else what was seen in the other shadow runs."""
    return all(
        _as_called(name, role[name]) == facts if name in role else seen.get(name, facts) == facts
        for name, facts in called.items()
    )


def _as_called(name: str, facts: Facts) -> Facts:
    """Return the part of what is declared that a shadow run records."""
    is_step = name.startswith("step ")
    kept = {"code", "version", "verified by"} if is_step else {"code", "version", "provider", "permission", "approval"}
    return {fact: value for fact, value in facts.items() if fact in kept}


# ── what differs ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Unlike:
    """What is not as it was promoted: facts by name, as they were and as they are."""

    old: Facts
    new: Facts

    def __str__(self) -> str:
        return changed_versions(self.old, self.new)


@dataclass(frozen=True, slots=True)
class Promoted:
    """The run that promoted a task, the role people approved, and what shadow runs called beyond what it names."""

    run_id: str
    role: Role
    seen: Role
    _known: dict[int, object] = field(default_factory=dict)

    def unlike(self, now: Role) -> Unlike | None:
        """Return in what a task's role is another than the promoted one; None when it is the same."""
        old, new = dict[str, str](), dict[str, str]()
        for name in {*self.role, *now}:
            if name in self.role or not self._was_seen(_as_called(name, now[name]), name):
                _note(old, new, name, self.role.get(name, {}), now.get(name, {}))
        return Unlike(old, new) if old or new else None

    def unlike_call(self, spec: StepSpec | EffectSpec) -> Unlike | None:
        """Return in what a step or an effect is another than people approved or shadow runs called; else None."""
        if self._known.get(id(spec)) is spec or (isinstance(spec, StepSpec) and spec.waits):
            return None
        name, facts = label(spec), declared_facts(spec)
        known = self.role.get(name)
        if facts != known and not self._was_seen(called_facts(spec), name):
            old, new = dict[str, str](), dict[str, str]()
            _note(old, new, name, known or {}, facts)
            return Unlike(old, new)
        if len(self._known) < KNOWN_MAX:
            self._known[id(spec)] = spec
        return None

    def ask_if_unlike(self, call: Call[Any]) -> Steps[None]:
        """Ask before a call begins that is another than was promoted: it may be known only now that it is called."""
        unlike = self.unlike_call(call.spec)
        if unlike is None or accepted_role(call.snapshot, unlike.new):
            return
        yield from asking(
            call,
            QuestionKind.VERSIONS_CHANGED,
            sentence=f"{call.path} is not as it was promoted ({self.run_id}): {unlike}.",
            evidence=[{"of": SINCE_PROMOTION, "old": unlike.old, "new": unlike.new}],
            about={"steps": [], "new": {SINCE_PROMOTION: unlike.new}},
            without=("redo",),
        )

    def _was_seen(self, facts: Facts, name: str) -> bool:
        """Say whether a shadow run called the same, under whatever name it was given at run time."""
        kind = name.partition(" ")[0]
        return any(seen == facts for other, seen in self.seen.items() if other.partition(" ")[0] == kind)


def _note(old: Facts, new: Facts, name: str, was: Facts, is_now: Facts) -> None:
    """Note the facts of one declaration that differ."""
    before = "" if name == TASK else f"{name}: "
    for fact in sorted({*was, *is_now}):
        if was.get(fact) != is_now.get(fact):
            old |= {before + fact: was[fact]} if fact in was else {}
            new[before + fact] = is_now.get(fact, "none")
