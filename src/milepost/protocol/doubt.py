"""An open intent: find out what became of it, by the table of design §5. Nobody guesses. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from milepost.protocol.approval import who_decides
from milepost.protocol.asking import asking, changes_since
from milepost.protocol.call import Call
from milepost.protocol.landing import recovered
from milepost.protocol.ops import Append, Load, LookUp, Moment, Now, Park, Steps, Wait
from milepost.protocol.outcomes import CannotTell, Found, NotFound
from milepost.protocol.policy import KEY_MARGIN
from milepost.protocol.questions import ask, ended
from milepost.protocol.request import Request
from milepost.protocol.snapshot import Snapshot
from milepost.protocol.spec import EffectSpec, own_versions
from milepost.protocol.state import EffectState, Send
from milepost.records.canonical import Json, parse
from milepost.records.model import IntentRecorded, QuestionKind, WaitRecorded
from milepost.records.shown import cut_to_size
from milepost.records.times import age, format_time, parse_time

REASON_SIZE_MAX = 500
"""Bytes of a lookup's reason kept with the wait that follows it."""


def resolve(call: Call[EffectSpec], request: Request) -> Steps[bool]:
    """Resolve an open intent. True: send (again); False: it is settled now. Else a question.

    Where no send is open the run's store went back: there may have been one that no record knows.
    """
    state = call.effect if call.effect is not None and call.effect.open_sends else None
    key = str(request.key)
    if state is not None:
        key = state.sends[0].intent.key
        yield from _check_same(call, state, request)
    reason = "its provider has neither a lookup nor a known key lifetime"
    if call.spec.lookup is not None:
        answer = yield from look_up(call, key, state)
        if isinstance(answer, Found):
            yield from recovered(call, key, state, answer)
            return False
        if isinstance(answer, NotFound):
            return True
        reason = f"the lookup cannot tell: {answer.reason}"
    now: Moment = yield Now()
    if call.spec.key_lifetime is not None:
        if state is not None and _within_lifetime(call.spec.key_lifetime, state, now):
            return True
        besides = "it has no lookup" if call.spec.lookup is None else reason
        reason = f"the provider's key lifetime of {call.spec.key_lifetime} is over or its age cannot be told; {besides}"
    yield from _ask(call, request, key, state, reason)
    return False


def foreseen(spec: EffectSpec | None, state: EffectState, now: Moment, over: str = "") -> tuple[str, str]:
    """Say what a resume will do about an open intent, asking nobody: `resolve` in words, with a state of `Finding`.

    `over` says why the plan does not come to its effect any more, where that is known.
    """
    if state.answer is not None:
        return "ok", "would be settled as it was answered"
    if over and (spec is None or spec.lookup is None):
        return "ask", f"would ask: {over}, and nobody can look it up"
    if spec is None:
        return "wait", "can be told when the plan reaches it: its effect is not declared, or twice"
    if spec.lookup is not None:
        return "wait", "would be looked up before anything runs"
    if own_versions(state.open_sends[0].intent.versions) != own_versions(spec.versions):
        return "ask", "would ask: the code of the effect changed since"
    if spec.key_lifetime is None:
        return "ask", "would ask: nobody can look it up"
    if _within_lifetime(spec.key_lifetime, state, now):
        return "ok", f"would be sent again with the same key, within its lifetime of {spec.key_lifetime}"
    return "ask", f"would ask: the lifetime of its key, {spec.key_lifetime}, is over or its age cannot be told"


def _within_lifetime(lifetime: timedelta, state: EffectState, now: Moment) -> bool:
    """Say whether the provider still knows the key; by the wall clock or the machine's own, whichever says older."""
    first = state.sends[0].intent
    passed = age(first.at, now.at)
    own = timedelta(seconds=now.since(first.uptime) or 0.0)
    return passed is not None and max(passed, own) < lifetime - KEY_MARGIN


def _check_same(call: Call[EffectSpec], state: EffectState, request: Request) -> Steps[None]:
    """Ask when the request or the effect's code is not the recorded one."""
    sent = state.open_sends[0].intent
    changes: list[str] = []
    if sent.request_digest != request.digest:
        changes = yield from changes_since(sent.request, f"request of {call.path}", request.data)
        changes = changes or ["the request differs"]
    elif own_versions(sent.versions) != own_versions(call.spec.versions):
        changes = [f"code of the effect: {own_versions(sent.versions)} → {own_versions(call.spec.versions)}"]
    if changes:
        yield from _ask(call, request, sent.key, state, f"the plan makes another call now: {changes[0]}", changes)


def look_up(call: Call[EffectSpec], key: str, state: EffectState | None) -> Steps[Found[Any] | NotFound | CannotTell]:
    """Ask the provider, not before `settle` has passed; when it cannot tell, as often as the retry policy says.

    Crash: lookups that could not tell are counted with the wait after them, so that a restart does not begin again.
    """
    known, call.looked_up = call.looked_up, None
    if isinstance(known, (Found, NotFound, CannotTell)):
        return known
    yield from _settle(call, state)
    if state is not None and state.looks and state.until is not None:
        yield Wait(state.until, f"{call.path} is looked up again")
    looks = state.looks if state is not None else 0
    while True:
        answer: Found[Any] | NotFound | CannotTell = yield LookUp(key)
        looks += 1
        retry = call.spec.retry
        if not isinstance(answer, CannotTell) or retry is None or looks >= retry.attempts:
            return answer
        yield from _wait_to_look_again(call, state, answer, looks, retry.wait(looks))


def _wait_to_look_again(
    call: Call[EffectSpec], state: EffectState | None, answer: CannotTell, look: int, wait: timedelta
) -> Steps[None]:
    """Wait before the next lookup. Crash: before the record this lookup is not counted, after it the wait is kept."""
    now: Moment = yield Now()
    until = format_time(now.at + wait)
    reason = f"{call.path} is looked up again: {cut_to_size(answer.reason, REASON_SIZE_MAX)}"
    if state is not None:
        yield Append((WaitRecorded(at=now.text, path=call.path, until=until, reason=reason, look=look),))
    yield Wait(until, reason)


def _settle(call: Call[EffectSpec], state: EffectState | None) -> Steps[None]:
    """Wait until a lookup may be believed: by the wall clock, and by the machine's own, which does not jump."""
    now: Moment = yield Now()
    sends = state.open_sends if state else []
    wall = (_settled_at(call.spec, sends, now.at, call.run.lease_s) - now.at).total_seconds()
    settled = now.ticks + max(wall, _left_to_settle(call.spec, sends, now))
    while now.ticks < settled:
        until = format_time(now.at + timedelta(seconds=settled - now.ticks))
        yield Wait(until, f"{call.path} settles at its provider before it is looked up")
        now = yield Now()


def _left_to_settle(spec: EffectSpec, sends: list[Send], now: Moment) -> float:
    """Return the seconds until `settle` has passed on the machine's own clock, as far as that tells: since its boot."""
    settle = (spec.settle or timedelta(0)).total_seconds()
    passed = [_passed(send, now) for send in sends]
    return max((settle - seconds for seconds in passed if seconds is not None), default=0.0)


def _passed(send: Send, now: Moment) -> float | None:
    """Return the seconds since the latest moment a call can have arrived, None where no clock but the wall's tells."""
    if send.heard_ticks is not None:
        return now.ticks - send.heard_ticks
    return now.since(send.outcome.uptime if send.outcome is not None else send.resumed_uptime)


def _settled_at(spec: EffectSpec, sends: list[Send], now: datetime, lease_s: float) -> datetime:
    """Return when a lookup may be believed: `settle` after the latest moment the call can have arrived.

    That is the time an exception was recorded; else, its process having died, the first resume after it.
    A clock that ran backward makes the age unknown: then `settle` counts from now.
    """
    settle = spec.settle or timedelta(0)
    latest = now if not sends else max(_latest_arrival(send, now, lease_s) for send in sends)
    return min(latest, now) + settle


def _latest_arrival(send: Send, now: datetime, lease_s: float) -> datetime:
    if send.outcome is not None:
        return parse_time(send.outcome.at)
    if send.resumed_at is not None:
        return parse_time(send.resumed_at)
    return max(now, parse_time(send.intent.at) + timedelta(seconds=lease_s / 3))


def ask_unsettled(found: str, s: Snapshot, intents: Iterable[tuple[EffectState, Send]], run_id: str) -> Steps[None]:
    """Ask what became of open intents that nothing settles, all at once; `found` says what showed them.

    Goes on only where there are none. Crash: some are asked, each whole; the next resume finds the others again.
    """
    doubts = {state.path: (state, send) for state, send in intents}
    for path, (state, send) in doubts.items():
        now = yield Now()
        intent = send.intent
        asked = ask(
            QuestionKind.OUTCOME_UNKNOWN,
            s,
            run_id=run_id,
            at=now.text,
            path=path,
            sentence=f"{found}, but nobody knows whether {path} happened at {intent.provider} (key {intent.key}).",
            evidence={
                "effect": path,
                "key": intent.key,
                "provider": intent.provider,
                "sends": _told(state),
                "request": (yield from sent_request(intent)),
            },
            about=who_decides(s, path),
            once=doubted(path),
        )
        yield replace(asked, ahead=True)
    if doubts:
        yield Park()


def sent_request(intent: IntentRecorded) -> Steps[Json]:
    """Return the exact request that an intent was recorded for."""
    return parse((yield Load(intent.request, f"request of {intent.path}")))


def _ask(
    call: Call[EffectSpec],
    request: Request,
    key: str,
    state: EffectState | None,
    reason: str,
    changes: Sequence[str] = (),
) -> Steps[None]:
    planned = parse(request.data)
    sent = (yield from sent_request(state.open_sends[0].intent)) if state is not None else planned
    yield from asking(
        call,
        QuestionKind.OUTCOME_UNKNOWN,
        sentence=f"Nobody knows whether {call.path} happened at {call.spec.provider} (key {key}): {ended(reason)}",
        evidence={
            "effect": call.path,
            "key": key,
            "provider": call.spec.provider,
            "sends": _told(state) if state is not None else [],
            "reason": reason,
            "changes": list(changes),
            "request": sent,
            **({"new_request": planned} if sent != planned else {}),
        },
        once=doubted(call.path),
    )


def _told(state: EffectState) -> list[Json]:
    """Say of each send of an effect when it was and how it ended."""
    return [{"attempt": s.intent.attempt, "at": s.intent.at, "error": _error(s)} for s in state.sends]


def doubted(path: str) -> str:
    """Name what became of an effect, for whoever may ask about it: the plan's own call, or one in its place."""
    return f"what became of {path}"


def _error(send: Send) -> str | None:
    return str(send.outcome.error) if send.outcome is not None and send.outcome.error is not None else None
