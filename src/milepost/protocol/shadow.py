"""An effect in a shadow run: what would be sent is recorded, nothing is claimed, looked up, approved or sent. Pure.

What the next step needs is supplied by the effect's `shadow=`, is None where it returns none, or is asked of a person.
"""

from __future__ import annotations

from typing import Any

from milepost.errors import MilepostError, NotDecodable, Signal, StepFailed
from milepost.protocol.asking import ask_about_plan, asking
from milepost.protocol.call import Call
from milepost.protocol.failure import error_record, leaves_as_it_is
from milepost.protocol.keep import keep_bytes
from milepost.protocol.ops import Append, Artifact, Ended, Load, Now, Steps, SupplyResult
from milepost.protocol.outcomes import unwrapped
from milepost.protocol.questions import ended
from milepost.protocol.request import Request
from milepost.protocol.spec import EffectSpec
from milepost.protocol.state import EffectState
from milepost.records.canonical import parse
from milepost.records.model import EffectShadowed, QuestionKind


def shadow_effect(call: Call[EffectSpec], request: Request) -> Steps[Any]:
    """Record the exact request of an effect that is not sent; return what stands in for the provider's result.

    Another request than the one recorded is recorded anew: nothing was sent that it could contradict.
    Raises: StepFailed when shadow= raises, NotEncodable; RunPaused by asking.
    """
    state = call.effect
    noted = state.shadowed if state is not None else None
    if noted is None and call.plan_changed:
        yield from ask_about_plan(call, call.unclaimed)
    if noted is None or noted.request_digest != request.digest:
        yield from _note(call, request)
    state = call.effect
    assert state is not None
    return (yield from _result(call, state, request.data))


def _note(call: Call[EffectSpec], request: Request) -> Steps[None]:
    """Record what would be sent. Not waited for: what starts next makes it durable.

    Crash: not recorded, and recorded by the next resume; nothing was sent either way.
    """
    supplied = yield from _supplied(call)
    artifacts = [*supplied, (yield from keep_bytes(request.data))]
    now, rule = (yield Now()), call.spec.approving
    record = EffectShadowed(
        at=now.text,
        path=call.path,
        effect=call.spec.name,
        key=str(request.key),
        provider=call.spec.provider,
        request=artifacts[-1].pointer,
        request_digest=request.digest,
        item_key=call.item_key,
        permission=call.spec.permission,
        versions=call.versions,
        result=supplied[0].pointer if supplied else None,
        would_ask=rule.in_words() if rule is not None and rule.before else "",
        next_action=call.spec.next_action,
        branch=call.branch,
    )
    yield Append((record,), artifacts)


def _supplied(call: Call[EffectSpec]) -> Steps[list[Artifact]]:
    """Return the result that shadow= supplies, as an artifact; none when a person has to give it."""
    if call.spec.shadow is None:
        return []
    ended: Ended = yield SupplyResult()
    if ended.error is not None:
        raise _as_failure(call, ended.error) from ended.error
    data, _ = call.spec.output.round_trip(unwrapped(ended.value))
    return [(yield from keep_bytes(data, call.spec.output.media_type))]


def _as_failure(call: Call[EffectSpec], error: BaseException) -> BaseException:
    if isinstance(error, (MilepostError, Signal)) or leaves_as_it_is(error):
        return error
    return StepFailed(run_id=call.run_id, path=call.path, attempt=1, error=f"its shadow=: {error_record(error)}")


def _result(call: Call[EffectSpec], state: EffectState, request: bytes) -> Steps[Any]:
    """Return the recorded result in the provider's place; what a person gave and does not fit is asked again."""
    noted = state.shadowed
    assert noted is not None
    pointer = noted.result or state.answered_result
    if pointer is None:
        yield from _ask(call, noted, request, "the effect has no shadow= that would supply it")
        raise AssertionError("a question never goes on")
    data = yield Load(pointer, f"result of {call.path}")
    try:
        return call.spec.output.decode(data, pointer.media_type)
    except NotDecodable as error:
        if pointer is noted.result:
            raise
        yield from _ask(call, noted, request, str(error))


def _ask(call: Call[EffectSpec], noted: EffectShadowed, request: bytes, why: str) -> Steps[None]:
    yield from asking(
        call,
        QuestionKind.SHADOW_RESULT_NEEDED,
        sentence=(
            f"{call.path} was not sent, this is a shadow run; what comes next needs what {noted.provider} would have "
            f"returned, and {ended(why)} Give the result as JSON, or add shadow= to the effect."
        ),
        evidence={
            "effect": call.path,
            "key": noted.key,
            "provider": noted.provider,
            "request": parse(request),
            "expected": call.spec.output.described,
        },
    )
