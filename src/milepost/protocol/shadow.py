"""An effect in a shadow run: what would be sent is recorded, nothing is claimed, looked up, approved or sent. Pure.

What the next step needs is supplied by the effect's `shadow=`, is None where it returns none, or is asked of a person.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from milepost.errors import BadOption, MilepostError, NotDecodable, Signal, StepFailed
from milepost.protocol.amounts import is_number
from milepost.protocol.asking import ask_about_plan, asking
from milepost.protocol.call import Call
from milepost.protocol.failure import error_record, leaves_as_it_is
from milepost.protocol.keep import keep_bytes
from milepost.protocol.ops import Append, Artifact, Ended, Load, Now, Steps, SupplyResult
from milepost.protocol.outcomes import Applied
from milepost.protocol.questions import ended
from milepost.protocol.request import Request
from milepost.protocol.spec import EffectSpec
from milepost.protocol.state import EffectState
from milepost.records.annotations import function_annotations
from milepost.records.canonical import parse
from milepost.records.codec import Codec
from milepost.records.model import EffectShadowed, QuestionKind


def shadow_effect(call: Call[EffectSpec], request: Request) -> Steps[Any]:
    """Record the exact request of an effect that is not sent; return what stands in for the provider's result.

    Another request than the one recorded is recorded anew: nothing was sent that it could contradict.
    Raises: StepFailed when shadow= raises, NotEncodable; RunPaused by asking.
    """
    state = call.effect
    noted = state.shadowed if state is not None else None
    if noted is None and call.plan_changed:
        yield from ask_about_plan(call)
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
    value = ended.value.result if isinstance(ended.value, Applied) else ended.value
    data, _ = call.spec.output.round_trip(value)
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


# ── declaring ───────────────────────────────────────────────────────────────────────────────────────


def supplier(where: str, function: Callable[..., Any], given: Any, output: Codec[Any]) -> Callable[..., Any] | None:
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


def checked_threshold(where: str, shadow_first: int, agreement: float) -> dict[str, Any]:
    """Check what a task asks for before it may run live. Raises: BadOption."""
    if isinstance(shadow_first, bool) or not isinstance(shadow_first, int) or shadow_first < 0:
        raise BadOption(where=f"{where}, shadow_first=", reason=f"expected 0, 1, 2, …, found {shadow_first!r}")
    if not is_number(agreement, 0, 1) or not agreement:
        raise BadOption(where=f"{where}, agreement=", reason=f"expected more than 0, at most 1, found {agreement!r}")
    return {"shadow_first": shadow_first, "agreement": float(agreement)}
