"""The protocol of an effect: intent → send → outcome, and what to do in doubt (design §5, the table). Pure.

Only `applied` is final: such an effect is never sent again. Doubt ends in a lookup, in the provider's own
memory of the key, or with a person; never in a guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from milepost.errors import NotDecodable, PermissionMissing
from milepost.protocol.approval import Matter, allowed, ask_ahead, rule_of
from milepost.protocol.approving import Approving
from milepost.protocol.asking import ask_about_plan, ask_attempts_used, asking, changes_since
from milepost.protocol.call import Call
from milepost.protocol.claim import settle_claim
from milepost.protocol.doubt import ask_unsettled, resolve, sent_request
from milepost.protocol.keys import Key, derive_key
from milepost.protocol.landing import answered
from milepost.protocol.ops import Append, Load, Now, Outstanding, Steps, Wait
from milepost.protocol.questions import ended, listed
from milepost.protocol.request import Request, exact_request
from milepost.protocol.sending import effect_failed, send
from milepost.protocol.shadow import shadow_effect
from milepost.protocol.spec import EffectSpec
from milepost.protocol.state import EffectState, NewSend
from milepost.protocol.within import keep_pace
from milepost.records.canonical import Json, parse
from milepost.records.model import (
    EffectRefused,
    IntentRecorded,
    OutcomeRecorded,
    QuestionKind,
)


def effect(call: Call[EffectSpec]) -> Steps[Any]:
    """Bring one effect to `applied` and return its result; a recorded one is returned without sending.

    Raises: PermissionMissing before any intent; StepFailed (rejected or failed); Declined; RunPaused by asking.
    """
    yield from _check_permission(call)
    request = yield from _request(call)
    if call.snapshot.is_shadow:
        return (yield from shadow_effect(call, request))
    yield from _before_first_send(call, request)
    while True:
        state = call.effect
        if state is not None and state.answer is not None:
            yield from answered(call, str(request.key), request.digest, state.answer)
        elif state is not None and state.applied is not None and not state.new_send(request.digest):
            return (yield from _recorded_result(call, request, state, state.applied))
        elif state is not None and state.failure is not None:
            raise effect_failed(call, str(state.failure.error))
        elif (yield from _may_send(call, request, state)):
            answer = yield from _allowed(call, request)
            if (yield from keep_pace(call)):
                answer = yield from _allowed(call, request)  # it may have expired meanwhile
            before, request = request, (yield from _looked_at_again(call, request))
            if request.digest != before.digest and _rests_on_it(call, answer, request):
                continue
            returned = yield from send(call, request, answer)
            if returned is not None:
                return returned.value


def effect_key(call: Call[EffectSpec], variant: int = 0) -> Key:
    """Derive the key of a call (design §5, Keys)."""
    if call.spec.scope == "task":
        return derive_key(call.task.name, "", "", call.spec.name, call.item_key, variant)
    return derive_key(call.task.name, call.family, call.path, call.spec.name, call.item_key, variant)


def _check_permission(call: Call[EffectSpec]) -> Steps[None]:
    """Refuse what the task may not do, and record it once: a plan that catches the error leaves a trace all the same.

    Crash: refused and not recorded; the next resume refuses and records it.
    """
    needed, held = call.spec.permission, tuple(sorted(call.task.permissions or ()))
    if needed is None or _is_permitted(call):
        return
    if needed not in call.snapshot.refused.get(call.path, ()):
        now = yield Now()
        yield Append((EffectRefused(at=now.text, path=call.path, effect=call.spec.name, permission=needed, held=held),))
    raise PermissionMissing(path=call.path, permission=needed, task=call.task.name, held=", ".join(held) or "none")


def _is_permitted(call: Call[EffectSpec]) -> bool:
    return call.spec.permission is None or call.spec.permission in (call.task.permissions or ())


def _request(call: Call[EffectSpec]) -> Steps[Request]:
    """Fix the exact request, and the key it goes out under."""
    exact = yield from exact_request(call)
    anew = _allowed_anew(call, exact.digest)
    variant = anew.number if anew is not None else 0
    return Request(exact, effect_key(call, variant))


def _allowed_anew(call: Call[EffectSpec], request_digest: str) -> NewSend | None:
    return call.effect.new_send(request_digest) if call.effect is not None else None


def _looked_at_again(call: Call[EffectSpec], request: Request) -> Steps[Request]:
    """Return the exact request as it is now: its files may have changed since, there may have been a wait of hours."""
    return (yield from _request(call)) if call.spec.arguments.holds_paths else request


def _rests_on_it(call: Call[EffectSpec], answer: str | None, request: Request) -> bool:
    """Say whether people had or have to do with a request that changed, or an earlier send is open: that comes first.

    Where nothing did, the intent simply records what is sent.
    """
    if answer is not None or rule_of(call, "before", request.exact) is not None:
        return True
    return call.effect is not None and bool(call.effect.open_sends)


def _before_first_send(call: Call[EffectSpec], request: Request) -> Steps[None]:
    """Ask about an effect that no record knows in a plan that changed; settle a key that another run may own."""
    if call.effect is None:
        others: Sequence[str] = (yield Outstanding(request.digest)) if call.outstanding else ()
        elsewhere = _most_alike(call, request)
        yield from _settle_doubt(call, [*call.unclaimed, *others, *(sent.path for sent in elsewhere)])
        if elsewhere and call.path not in call.snapshot.accepted_plan:
            yield from _ask_elsewhere(call, elsewhere, request)
        if call.plan_changed:
            yield from ask_about_plan(call, call.unclaimed)
        if call.step is not None and not call.is_accepted:
            yield from ask_about_plan(call, [call.path])  # it was a step of this name, which may have sent as well
        if others and not call.is_accepted:
            yield from ask_about_plan(call, others, besides=others)
    state = call.effect
    if call.run.promoted is not None and (state is None or not state.finished):
        yield from call.run.promoted.ask_if_unlike(call)
    if call.spec.scope == "task" and (state is None or not state.finished or state.new_send(request.digest)):
        yield from settle_claim(call, request)


def _most_alike(call: Call[EffectSpec], request: Request) -> Sequence[IntentRecorded]:
    """Return which sends under other paths this call may be: those of just this request, else all of its key=."""
    return [sent for sent in call.elsewhere if sent.request_digest == request.digest] or call.elsewhere


def _settle_doubt(call: Call[EffectSpec], places: Sequence[str]) -> Steps[None]:
    """Ask what became of each send in whose place this one may stand: be it under another name."""
    s = call.snapshot
    doubts = [doubt for path in places if not s.is_finished(path) for doubt in s.left_open_in(path)]
    found = f"{call.path} has no record and may be what was sent before"
    yield from ask_unsettled(found, s, doubts, call.run_id)


def _ask_elsewhere(call: Call[EffectSpec], others: Sequence[IntentRecorded], request: Request) -> Steps[None]:
    """Ask before the same effect is sent once more under another name."""
    paths = [sent.path for sent in others]
    sent, planned = (yield from sent_request(others[0])), parse(request.data)
    yield from asking(
        call,
        QuestionKind.PLAN_CHANGED,
        sentence=f"{call.path} has no record, but the same effect was applied as {listed(paths)}: send it once more?",
        evidence={
            "called": call.path,
            "applied_as": paths,
            "key": call.item_key,
            "request": sent,
            **({"new_request": planned} if sent != planned else {}),
        },
        about={"paths": [call.path]},
    )


# ── the recorded result ─────────────────────────────────────────────────────────────────────────────


def _recorded_result(
    call: Call[EffectSpec], request: Request, state: EffectState, applied: OutcomeRecorded
) -> Steps[Any]:
    sent = next((s.intent for s in state.sends if s.intent.attempt == applied.attempt), None)
    known = sent.request_digest if sent is not None else applied.request_digest
    if known is not None and request.digest not in (known, state.accepted_request):
        yield from _ask_about_request(call, request, applied, sent)
    pointer = state.answered_result or applied.result
    if pointer is None:
        return (yield from _ask_for_result(call, applied, applied.error or "nobody told what it was"))
    data = yield Load(pointer, f"result of {call.path}")
    try:
        return call.spec.output.decode(data, pointer.media_type)
    except NotDecodable as error:
        if not applied.recovered and pointer is applied.result:
            raise  # our own record, and the type changed since: the code has to read it
        return (yield from _ask_for_result(call, applied, error))


def _ask_about_request(
    call: Call[EffectSpec], request: Request, applied: OutcomeRecorded, sent: IntentRecorded | None
) -> Steps[None]:
    changes: list[str] = []
    if sent is not None:
        changes = yield from changes_since(sent.request, f"request of {sent.path}", request.data)
    yield from asking(
        call,
        QuestionKind.REQUEST_CHANGED,
        sentence=(
            f"{call.path} was applied with another request than the plan makes now: "
            f"{listed(changes, 1) or 'it differs'}."
        ),
        evidence={"effect": call.path, "key": applied.key, "changes": changes, "new_request": parse(request.data)},
        about={"request_digest": request.digest},
    )


def _ask_for_result(call: Call[EffectSpec], applied: OutcomeRecorded, why: object) -> Steps[None]:
    yield from asking(
        call,
        QuestionKind.OUTCOME_UNKNOWN,
        sentence=(
            f"{call.path} was applied (reference {applied.ref or 'unknown'}), but its result is not known: "
            f"{ended(str(why))} Give the result as JSON."
        ),
        evidence={"effect": call.path, "key": applied.key, "ref": applied.ref, "error": str(why)},
        without=("not-applied",),
    )


# ── approval ────────────────────────────────────────────────────────────────────────────────────────


def effect_ahead(call: Call[EffectSpec]) -> Steps[None]:
    """Ask for the approval of one of many calls, as far as nothing else has to be settled before.

    Crash: asked or not asked; what is not asked yet is asked by the next resume.
    """
    s, state = call.snapshot, call.effect
    if s.is_shadow or s.in_doubt or not _is_permitted(call):
        return
    if state is None and (call.plan_changed or call.elsewhere):
        return  # the plan changed: that is asked first, when the call is carried out
    if state is not None and (state.finished or state.open_sends or state.in_doubt or state.answer):
        return
    if rule_of(call, "before") is not None or s.declined:
        request = yield from _request(call)
        rule = rule_of(call, "before", request.exact)
        if rule is not None:
            yield from ask_ahead(call, _matter(call, rule, request))


def _allowed(call: Call[EffectSpec], request: Request) -> Steps[str | None]:
    """Return the question whose answer allows this send, None where no answer is needed; else ask. Raises: Declined."""
    rule = rule_of(call, "before", request.exact)
    if rule is not None:
        return (yield from allowed(call, _matter(call, rule, request)))
    anew = _allowed_anew(call, request.digest)
    return anew.question_id if anew is not None else None


def _matter(call: Call[EffectSpec], rule: Approving, request: Request) -> Matter:
    shown: dict[str, Json] = {"effect": call.path, "key": str(request.key), "provider": call.spec.provider}
    if call.spec.permission is not None:
        shown["permission"] = call.spec.permission
    without = ("redo",) if call.spec.arguments.watched else ("edit", "redo")
    return Matter("before", rule, request.exact, shown, without, f"{call.path} is to be sent to {call.spec.provider}")


# ── sending ─────────────────────────────────────────────────────────────────────────────────────────


def _may_send(call: Call[EffectSpec], request: Request, state: EffectState | None) -> Steps[bool]:
    """Resolve what is open, wait out a recorded wait, ask when the attempts are used. True: send now."""
    if state is None:
        return not call.snapshot.in_doubt or (yield from resolve(call, request))
    if state.until is not None:
        yield Wait(state.until, f"{call.path} is tried again")
    if (state.open_sends or state.in_doubt) and not (yield from resolve(call, request)):
        return False
    if state.starts >= call.starts_max:
        error = state.last.outcome.error if state.last and state.last.outcome else None
        yield from ask_attempts_used(call, state.starts, str(error) if error else "")
    return True
