"""What the six rules found, one line each: that is `resume --check`. Pure; decides nothing, changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from milepost.protocol.decide import World, asked_about_going_back, must_be_asked
from milepost.protocol.doubt import foreseen
from milepost.protocol.ops import Moment
from milepost.protocol.policy import RESUMES_MAX
from milepost.protocol.questions import counted, listed
from milepost.protocol.snapshot import Snapshot
from milepost.protocol.spec import EffectSpec
from milepost.protocol.used import uses
from milepost.protocol.versions import accepted, difference_of
from milepost.records.model import ENDED, RunStatus
from milepost.records.times import parse_time

END_OF_PLAN = "the end of the plan"
"""What follows where the plan comes to its end without a call that has no checkpoint."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule of a resume: `state` is ok, ask, refuse or wait."""

    number: int
    rule: str
    state: str
    found: str


def findings(
    s: Snapshot,
    w: World,
    following: str = "",
    declared: Mapping[str, EffectSpec] = MappingProxyType({}),
    entered: int = 0,
) -> list[Finding]:
    """Return one line per rule: what it found and what a resume would do. Changes nothing.

    `following` names the call that comes next, `declared` the effects with an open intent by their path, `entered` is
    the number of answers that are in the snapshot and not yet in the journal.
    """
    if w.refusal is not None:
        return [_trust_line(s, w), *_not_looked_at(s)]
    is_cancelled = s.cancel is not None or w.cancel is not None
    over = "the run is cancelled" if is_cancelled else "the plan ends without it" if following == END_OF_PLAN else ""
    intents = _intents_line(s, w, declared, over)
    state, found = _continue_line(s, following)
    if is_cancelled and s.status not in ENDED:
        state, found = ("ok" if intents.state == "ask" else "refuse"), "the run would end: cancelled"
    if entered:
        found = f"{counted(entered, 'answer')} would be entered; {found}"
    continued = Finding(5, "Continue", state, found)
    return [_trust_line(s, w), _sources_line(w), intents, _versions_line(s, w), continued, _bound_line(s, w)]


def _not_looked_at(s: Snapshot) -> list[Finding]:
    """Say of the other rules that they come after the first; an open intent that was read is named all the same."""
    rules = {2: "Sources", 3: "Intents", 4: "Versions", 5: "Continue", 6: "Bound"}
    found = dict.fromkeys(rules, "not looked at: the journal comes first")
    if intents := [f"{state.path} (key {send.intent.key})" for state, send in s.open_intents()]:
        found[3] = f"open, as far as could be read: {listed(intents)}"
    return [Finding(number, rule, "wait", found[number]) for number, rule in rules.items()]


def _trust_line(s: Snapshot, w: World) -> Finding:
    if w.refusal is not None:
        return Finding(1, "Trust", "refuse", str(w.refusal))
    if w.went_back_to is not None and not asked_about_going_back(s, w):
        return Finding(1, "Trust", "ask", f"the store went back to record {w.went_back_to} of {w.witnessed}")
    return Finding(1, "Trust", "ok", f"{counted(s.record_count, 'record')} read, seals and digests hold")


def _sources_line(w: World) -> Finding:
    checks = list(w.sources or ())
    gone = [c.name for c in checks if c.can_put_back]
    changed = [c for c in checks if c.found != c.expected and not c.can_put_back]
    if changed:
        return Finding(
            2, "Sources", "ask", "; ".join(f"{c.name}: {listed(list(c.changes)) or 'changed'}" for c in changed)
        )
    put_back = f"; would be put back: {listed(gone)}" if gone else ""
    return Finding(2, "Sources", "ok", f"{counted(len(checks), 'source')} as expected{put_back}")


def _intents_line(s: Snapshot, w: World, declared: Mapping[str, EffectSpec], over: str) -> Finding:
    intents: dict[tuple[str, str], list[str]] = {}
    for state, send in s.open_intents():
        now = w.moment or Moment(parse_time(w.at), w.at, 0.0)
        what = foreseen(declared.get(state.path), state, now, over)
        intents.setdefault(what, []).append(f"{state.path} (key {send.intent.key})")
    if not intents:
        return Finding(3, "Intents", "ok", f"no open intent; {counted(s.applied_count, 'effect')} applied")
    worst = next(state for state in ("ask", "wait", "ok") if state in {state for state, _ in intents})
    return Finding(3, "Intents", worst, "; ".join(f"{says}: {listed(names)}" for (_, says), names in intents.items()))


def _versions_line(s: Snapshot, w: World) -> Finding:
    changed = [difference_of(c) for c in w.versions or ()]
    if not changed:
        return Finding(4, "Versions", "ok", "instructions, tools, model and code are as recorded")
    asks = not all(accepted(s, check) for check in must_be_asked(w))
    state, follows = ("ask", "would ask") if asks else ("ok", "would be noted")
    return Finding(4, "Versions", state, f"{follows}: {listed(changed)}")


def _continue_line(s: Snapshot, following: str) -> tuple[str, str]:
    if s.status is RunStatus.DONE:
        return "ok", "the run is done: its recorded result is returned"
    if s.status in ENDED:
        return "refuse", f"the run has ended: {s.status}"
    if s.stopped:
        return "refuse", "the run would end: stopped, as it was answered"
    if s.questions:
        return "ask", f"{len(s.questions)} open: " + listed([q.sentence for q in s.questions.values()], 1)
    if following.startswith("would ask"):
        return "ask", following
    if "(waits until " in following:
        return "wait", f"next: {following}"
    return "ok", f"next: {following or s.next_action or 'the first step'}"


def _bound_line(s: Snapshot, w: World) -> Finding:
    starts = [f"{x.path} start {x.starts}" for x in s.in_progress()]
    limits = uses(w.limits, s.used, parse_time(w.at))
    asks = s.fruitless >= RESUMES_MAX or any(use.reached for use in limits)
    found = [f"{s.fruitless} of {RESUMES_MAX} resumes without progress", *map(str, limits)]
    return Finding(6, "Bound", "ask" if asks else "ok", "; ".join([*found, *([listed(starts)] if starts else [])]))
