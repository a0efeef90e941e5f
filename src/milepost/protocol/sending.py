"""One send of an effect: intent → send → outcome, and what is recorded when it raised. Pure.

Whether it may be sent at all is decided before, in `effect`, which calls this.
"""

from __future__ import annotations

from traceback import walk_tb
from types import FunctionType
from typing import Any

from milepost.errors import StepFailed
from milepost.protocol.asking import ask_attempts_used
from milepost.protocol.call import Call
from milepost.protocol.failure import Again, after_failure, error_record, leaves_as_it_is
from milepost.protocol.keep import keep_bytes
from milepost.protocol.landing import Returned, landed
from milepost.protocol.ops import Append, Artifact, Ended, Now, ReadSecrets, Send, Steps
from milepost.protocol.outcomes import NotApplied
from milepost.protocol.request import Request
from milepost.protocol.spec import EffectSpec
from milepost.protocol.state import EffectState
from milepost.protocol.within import stay_within
from milepost.records.model import ErrorRecord, IntentRecorded, Outcome, OutcomeRecorded, Record, WaitRecorded
from milepost.records.paths import find_secrets


def send(call: Call[EffectSpec], request: Request, answer: str | None) -> Steps[Returned | None]:
    """Send once; return None when it did not land or its result could not be kept.

    The outcome is not waited for: what starts next makes both durable (design §5.1).
    Crash: an intent without an outcome, which the next reader resolves before anything else.
    """
    secrets = find_secrets(call.bound)
    if secrets:
        yield ReadSecrets(secrets)  # one that is not set must not leave an intent behind that nobody can close
    attempt, ticks = yield from _intend(call, request, answer)
    ended: Ended | None = yield Send(str(request.key), ticks)
    if ended is None:
        yield from _not_sent(call, attempt, request)
        return None
    if ended.error is None:
        returned = yield from landed(call, attempt, str(request.key), request.digest, ended)
        if ended.misused is not None:
            raise ended.misused
        return returned
    yield from _raised(call, attempt, request, ended, ended.error)
    return None


def _intend(call: Call[EffectSpec], request: Request, answer: str | None) -> Steps[tuple[int, float]]:
    """Make the intent durable; return its attempt, and the ticks from which its age counts.

    Crash: no intent and nothing sent, or an open intent that the next reader resolves.
    """
    now = yield from stay_within(call, (yield Now()))
    state = call.effect
    attempt = (state.last.intent.attempt + 1) if state is not None and state.last is not None else 1
    kept: Artifact = yield from keep_bytes(request.data)
    record = IntentRecorded(
        at=now.text,
        path=call.path,
        effect=call.spec.name,
        attempt=attempt,
        key=str(request.key),
        provider=call.spec.provider,
        request=kept.pointer,
        request_digest=request.digest,
        item_key=call.item_key,
        versions=call.versions,
        answer=answer,
        branch=call.branch,
        permission=call.spec.permission,
        uptime=now.uptime,
    )
    yield Append((record,), (kept,), wait=True, starts=True)
    return attempt, now.ticks


def _not_sent(call: Call[EffectSpec], attempt: int, request: Request) -> Steps[None]:
    """Close an intent that is too old to be sent, or came before a stop.

    Crash: it stays open, and is resolved as if it had been sent.
    """
    now = yield Now()
    reason = ErrorRecord("NotSent", "a stop was heard, or more than a third of the lease passed, since the intent")
    yield Append((_outcome(call, attempt, request, Outcome.REJECTED, now.text, error=reason),))


def _outcome(
    call: Call[EffectSpec], attempt: int, request: Request, outcome: Outcome, at: str, **more: Any
) -> OutcomeRecorded:
    return OutcomeRecorded(at=at, path=call.path, attempt=attempt, key=str(request.key), outcome=outcome, **more)


def _raised(call: Call[EffectSpec], attempt: int, request: Request, ended: Ended, error: BaseException) -> Steps[None]:
    """Record a send that raised: rejected only with proof, else unknown. Return to try again, or raise.

    Crash: the intent stays open and is resolved on resume.
    """
    now = yield Now()
    state = call.effect
    assert state is not None
    outcome = _what_is_known(call.spec, state, attempt, error)
    decision = after_failure(call.spec.retry, error, starts=state.starts, since=state.since, now=now.at)
    final = decision == "raise" and outcome is Outcome.REJECTED
    noted = error_record(error)
    took, uptime = round(ended.duration_s, 6), now.uptime if outcome is Outcome.UNKNOWN else None
    records: list[Record] = [
        _outcome(call, attempt, request, outcome, now.text, error=noted, final=final, duration_s=took, uptime=uptime)
    ]
    if isinstance(decision, Again):
        records.append(WaitRecorded(at=now.text, path=call.path, until=decision.until, reason="retry"))
    yield Append(records, wait=final)
    if state.last is not None:
        state.last.heard_ticks = now.ticks
    if isinstance(decision, Again):
        return
    if decision == "stop" or final:
        if leaves_as_it_is(error):
            raise error
        raise effect_failed(call, str(noted)) from error
    if outcome is Outcome.REJECTED:
        yield from ask_attempts_used(call, state.starts, str(noted))


def _what_is_known(spec: EffectSpec, state: EffectState, attempt: int, error: BaseException) -> Outcome:
    earlier_open = any(send.open for send in state.sends if send.intent.attempt != attempt)
    proven = isinstance(error, (NotApplied, *spec.rejected)) or _never_began(spec, error)
    return Outcome.REJECTED if proven and not earlier_open else Outcome.UNKNOWN


def _never_began(spec: EffectSpec, error: BaseException) -> bool:
    """Say whether a call did not fit the effect's function: no line of its code is in the traceback."""
    if type(error) is not TypeError or not isinstance(spec.function, FunctionType):
        return False
    return all(frame.f_code is not spec.function.__code__ for frame, _ in walk_tb(error.__traceback__))


def effect_failed(call: Call[EffectSpec], error: str) -> StepFailed:
    state = call.effect
    attempt = state.last.intent.attempt if state is not None and state.last is not None else 0
    return StepFailed(run_id=call.run_id, path=call.path, attempt=attempt, error=error)
