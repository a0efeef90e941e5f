"""Approval: what keeps a call back until people allowed exactly this; written once for effects and steps. Pure.

An answer is bound to the request, the rule it was given under, inputs, sources, versions, run and path: any difference
voids it and asks anew, saying what changed. It is consumed by the intent or the start, not by the answer, and covers
every later one of the same request; only its age counts again once it is proven that nothing happened.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from milepost.errors import Declined
from milepost.protocol.approving import Approving
from milepost.protocol.call import Call
from milepost.protocol.keep import keep_bytes
from milepost.protocol.keys import name_in
from milepost.protocol.ops import Ask, Load, Moment, Now, Park, Steps
from milepost.protocol.questions import ask, ended, listed
from milepost.protocol.request import Exact
from milepost.protocol.snapshot import Snapshot
from milepost.protocol.spec import EffectSpec
from milepost.protocol.state import ApprovalState
from milepost.records.canonical import Json, canonical, digest, parse
from milepost.records.compare import difference
from milepost.records.frozen import frozen
from milepost.records.identity import is_same_person
from milepost.records.model import AnswerEntered, Checkpoint, QuestionKind
from milepost.records.naming import body_of
from milepost.records.times import parse_time

SKEW_MAX = timedelta(minutes=5)
"""How far in the future an answer may lie by this clock before its age cannot be told."""
CHANGES_SAID = 3
"""Differences in the sentence of a question asked anew; the evidence has all of them."""


@frozen
class Matter:
    """What people are asked to allow: a request before it is sent, or an output before its checkpoint."""

    when: str  # "before" or "after"
    rule: Approving
    exact: Exact
    shown: dict[str, Json]  # what the evidence says of it besides
    without: tuple[str, ...]  # choices that make no sense here
    head: str  # the sentence, without its summary


def rule_of(call: Call[Any], when: str, exact: Exact | None = None) -> Approving | None:
    """Return the rule a call stands under: as it is declared; else, once people were asked, as it was then.

    So what somebody declined stays declined when the option that asked about it is taken away, also when the call is
    renamed as well: that the request is the same is known from `exact`.
    """
    declared: Approving | None = call.spec.approving
    if declared is not None and (declared.before if when == "before" else declared.after):
        return declared
    state = _asked(call, when) or _declined_elsewhere(call, when, exact)
    return Approving.recorded(state.question.about) if state is not None else None


def who_decides(s: Snapshot, path: str, rule: Approving | None = None) -> dict[str, Json]:
    """Say who may answer other questions whose answer lets what people approved happen: who may approve it.

    Without the `rule` of the call it is the one that people were asked by. Nothing for what needs no approval.
    """
    asked = s.approvals.get(path)
    if rule is None and asked is not None:
        rule = Approving.recorded(asked.question.about)
    return {} if rule is None else {"agents": [*sorted(s.agents)], "approvers": [*rule.approvers]}


def allowed(call: Call[Any], matter: Matter) -> Steps[str]:
    """Return the question whose answer allows this now; else ask. Raises: Declined, the same on each resume."""
    state = _asked(call, matter.when)
    if state is not None and not state.given:
        yield Park()  # asked together with others: nobody can have answered yet
    now: Moment = yield Now()
    why = yield from _not_allowed(call, matter, state, now.at)
    if why is None:
        assert state is not None
        return state.question.question_id
    yield (yield from _question(call, matter, why, now))
    raise AssertionError("a question never goes on")


def ask_ahead(call: Call[Any], matter: Matter) -> Steps[None]:
    """Ask now what `allowed` would ask later, and go on: so the items of one call are asked about together.

    Crash: asked or not asked; what is not asked yet is asked by the next resume.
    """
    state = _asked(call, matter.when)
    now: Moment = yield Now()
    if state is not None and not state.given:
        return
    if state is not None and _declined(state, matter) is not None:
        state.reached = True
        return
    why = yield from _not_allowed(call, matter, state, now.at)
    if why is not None:
        question: Ask = yield from _question(call, matter, why, now)
        yield Ask(question.question, question.evidence, ahead=True)


def _asked(call: Call[Any], when: str) -> ApprovalState | None:
    return call.snapshot.asked(when).get(call.path)


def _declined_elsewhere(call: Call[Any], when: str, exact: Exact | None) -> ApprovalState | None:
    """Return a decline that is about this call all the same: of an earlier run, or under another path before.

    It is the same function for the same `key=`; or the same request of an effect that no record knows, while the plan
    has not come to the one that was declined.
    """
    for path, state in call.snapshot.declined.items():
        about = state.question.about
        if about["when"] != when or state is _asked(call, when):
            continue
        if path == call.path:
            return state
        is_moved = call.item_key is not None and (name_in(path), about.get("item_key")) == (
            call.spec.name,
            call.item_key,
        )
        is_new = _is_effect(call) and about.get("is_effect") and call.effect is None and not state.reached
        if is_moved or (is_new and exact is not None and about["planned"] == exact.planned):
            return state
    return None


def _is_effect(call: Call[Any]) -> bool:
    return isinstance(call.spec, EffectSpec)


# ── whether what was answered allows this ───────────────────────────────────────────────────────────


def _not_allowed(
    call: Call[Any], matter: Matter, state: ApprovalState | None, now: datetime
) -> Steps[list[str] | None]:
    """Say why a person has to be asked; nothing in the list when nobody was asked before. None: it is allowed.

    Raises: Declined.
    """
    if state is None:
        moved = _declined_elsewhere(call, matter.when, matter.exact)
        return [_declined_there(moved)] if moved is not None else []
    last = state.given[-1]
    declined = _declined(state, matter)
    if declined is not None:
        state.reached = True
        raise _told(call, call.path, declined)
    if last.choice == "redo":
        return [f"it ran again, as {last.by} asked"]
    if matter.exact.unusable:
        return [matter.exact.unusable]
    changes = yield from _changes(call, matter, state)
    if last.choice == "decline":
        return [f"{last.by} declined another one", *changes]
    if last.choice == "edit" and state.needed > 1:
        return [f"{last.by} edited it", *changes]
    if changes:
        return [f"the approval by {_givers(state)} is void", *changes]
    return None if state.acted and _is_under_way(call, matter.when) else _not_usable(call, state, now)


def _declined_there(state: ApprovalState) -> str:
    run_id = state.question.about.get("declined_in")
    where = f" in run {run_id}" if run_id is not None else ""
    return f"{state.given[-1].by} declined it as {state.question.path}{where}"


def _is_under_way(call: Call[Any], when: str) -> bool:
    """Say whether what was allowed has begun and nobody knows its end: such an approval covers what is left of it."""
    effect, step = call.effect, call.step
    if effect is not None:
        return bool(effect.open_sends)
    began = step is not None and step.attempt > 0 and step.status is Checkpoint.IN_PROGRESS and not step.reopened
    return began and when == "before"


def _not_usable(call: Call[Any], state: ApprovalState, now: datetime) -> list[str] | None:
    """Say why an approval of exactly this cannot be used any more, None when it can."""
    agents = call.snapshot.agents  # also whoever went on with the run after the answer
    own = next((given.by for given in state.given if any(is_same_person(given.by, name) for name in agents)), None)
    if own is not None:
        return [f"the approval by {_givers(state)} is void", f"{own} runs the task"]
    if _is_expired(state, now):
        return [f"the approval by {_givers(state)} at {state.given[0].answered_at} has expired"]
    return None


def _declined(state: ApprovalState, matter: Matter) -> AnswerEntered | None:
    """Return the answer that declined exactly this. Another request is another question."""
    return state.declined if state.question.about["planned"] == matter.exact.planned else None


def declined_inside(call: Call[Any]) -> Declined | None:
    """Return the decline that ended a step from inside, as its caller was told of it; None when there was none."""
    s = call.snapshot
    inside = [*s.approvals.items(), *s.reviews.items()]
    declined = (state.given[-1] for path, state in inside if path.startswith(f"{call.path}/") and state.given)
    last = max((answer for answer in declined if answer.choice == "decline"), key=lambda a: a.at, default=None)
    if last is None:
        return None
    question, _ = s.answered[last.question_id]
    return _told(call, question.path, last)


def _told(call: Call[Any], path: str, answer: AnswerEntered) -> Declined:
    return Declined(run_id=call.run_id, path=path, by=answer.by, note=answer.note or "no reason given")


def _is_expired(state: ApprovalState, now: datetime) -> bool:
    """Say whether the oldest of the approvals holds no longer; one whose age cannot be told does not."""
    seconds = state.question.about.get("expires_s")
    if seconds is None:
        return False
    passed = now - min(parse_time(answer.answered_at) for answer in state.given)
    return not -SKEW_MAX <= passed <= timedelta(seconds=float(seconds))


def _changes(call: Call[Any], matter: Matter, state: ApprovalState) -> Steps[list[str]]:
    """Say what differs from what was approved, in the words of the evidence."""
    about, exact = state.question.about, matter.exact
    answers_it = exact.edit is not None and exact.edit.question_id == state.question.question_id
    its_own = answers_it and state.needed == 1
    unseen = exact.unseen if answers_it else ()
    request = str(about["request"]) if its_own else exact.digest
    now = _binding(call, matter.rule, request, state.order)
    if digest(canonical(now)) == about["binding"]:
        return [*unseen]
    assert state.question.evidence is not None
    old: Any = parse((yield Load(state.question.evidence, f"evidence of {state.question.question_id}")))
    shown = old["request"] if its_own else parse(exact.data)
    found = difference({**old["binding"], "request": old["request"]}, {**now, "request": shown})
    return [*map(str, found), *unseen] or ["what it is bound to differs"]


def _givers(state: ApprovalState) -> str:
    return " and ".join(dict.fromkeys(answer.by for answer in state.given))


def _binding(call: Call[Any], rule: Approving, request: str, order: int | None = None) -> dict[str, Json]:
    """Return what an approval is bound to. `order` leaves out what came after so many records of the fold.

    Sources are those of the steps that stand finished around the call, and what a person said to keep.
    """
    s = call.snapshot
    return {
        "approval": rule.in_words(),
        "inputs": s.started.inputs_fingerprint if s.started is not None else "",
        "kept": _kept(s),
        "path": call.path,
        "request": request,
        "run": call.run_id,
        "sources": _sources_around(s, call.path, order),
        "versions": dict(call.versions),
    }


def _sources_around(s: Snapshot, path: str, order: int | None) -> dict[str, Json]:
    found: dict[str, Json] = {}
    body = path
    while body:
        body = body_of(body)
        for near in s.children.get(body, ()):
            step = s.steps.get(near)
            if step is None or step.verified is None or step.verified.sources is None:
                continue
            if order is None or step.verified_order <= order:
                found[near] = step.verified.sources.digest
    return found


def _kept(s: Snapshot) -> dict[str, Json]:
    """Return what a person said to keep although it had changed, by their question, as it was said to them."""
    said = (q for q, a in s.answered.values() if q.question_kind == QuestionKind.SOURCE_CHANGED and a.choice == "keep")
    return {question.question_id: question.sentence for question in said}


# ── the question ────────────────────────────────────────────────────────────────────────────────────


def _question(call: Call[Any], matter: Matter, why: list[str], now: Moment) -> Steps[Ask]:
    """Build the question: a plain sentence, the exact canonical request, what an answer is bound to.

    Crash: perhaps a file of evidence that no record points at, which `doctor` lists.
    """
    rule, exact = matter.rule, matter.exact
    bound = _binding(call, rule, exact.digest)
    summary = rule.said(call.spec.arguments, call.bound)
    evidence: dict[str, Json] = {**matter.shown, "request": parse(exact.data), "binding": bound}
    if why:
        evidence["asked_anew"] = [*why]
    if summary:
        evidence["summary"] = summary
    if exact.edit is not None:
        evidence["edited_by"] = exact.edit.by
    anew = f" Asked anew: {ended(listed(why, CHANGES_SAID))}" if why else ""
    return ask(
        QuestionKind.APPROVAL,
        call.snapshot,
        run_id=call.run_id,
        at=now.text,
        path=call.path,
        sentence=ended(f"{matter.head}{f': {summary}' if summary else ''}") + anew,
        evidence=(yield from keep_bytes(canonical(evidence))),
        about=_about(call, matter, bound),
        without=matter.without,
    )


def _about(call: Call[Any], matter: Matter, bound: dict[str, Json]) -> dict[str, Json]:
    """Return what the fold and later calls need to know of the question."""
    rule, exact = matter.rule, matter.exact
    about: dict[str, Json] = {
        "agents": [*sorted(call.snapshot.agents)],
        "approvals": rule.needed,
        "approvers": [*rule.approvers],
        "binding": digest(canonical(bound)),
        "expires_s": rule.expires.total_seconds() if rule.expires is not None else None,
        "is_effect": _is_effect(call),
        "item_key": call.item_key,
        "own_line": not call.branch,
        "planned": exact.planned,
        "request": exact.digest,
        "when": matter.when,
    }
    moved = _declined_elsewhere(call, matter.when, exact)
    if moved is not None:
        about["declined_as"] = moved.question.path
    if exact.edit is not None:
        about["edit"] = exact.edit.to_json()
    return about
