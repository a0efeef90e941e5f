"""The synchronous driver: carries out what the protocol yields, in the calling thread."""

from __future__ import annotations

from typing import Any

from milepost.errors import MilepostError, Signal
from milepost.protocol.effect import effect, effect_ahead
from milepost.protocol.ops import Op, Steps, Within
from milepost.protocol.pause import pause
from milepost.protocol.reviewing import step_ahead
from milepost.protocol.spec import EffectSpec
from milepost.protocol.step import step
from milepost.runtime import crash
from milepost.runtime.active import ActiveRun
from milepost.runtime.looking import only_look
from milepost.runtime.perform import PERFORM, Handler
from milepost.runtime.scope import RuntimeCall


def protocol_of(call: RuntimeCall) -> Steps[Any]:
    """Return what brings a call to its end: the protocol of an effect, of a step or of a durable sleep."""
    if isinstance(call.spec, EffectSpec):
        return effect(call)
    return pause(call) if call.spec.waits else step(call)


def ahead_of(call: RuntimeCall) -> Steps[None]:
    """Return what asks for the approval of one of many calls, before any of them is carried out."""
    return effect_ahead(call) if isinstance(call.spec, EffectSpec) else step_ahead(call)


def drive_ahead(call: RuntimeCall) -> None:
    """Ask for the approval of a call that is carried out later. Crash: as `ahead_of`."""
    try:
        call.scope.enter(call)
        drive(ahead_of(call), call.scope.run, call)
    except Signal as raised:
        call.scope.signal(raised)
        raise
    finally:
        call.scope.leave(call)


def drive_call(call: RuntimeCall) -> Any:
    """Bring one named call to its end. Raises what the plan may see: StepFailed, Declined, misuse, a Signal."""
    scope = call.scope
    try:
        scope.enter(call)
        value = drive(protocol_of(call), scope.run, call)
        if isinstance(call.spec, EffectSpec):
            scope.run.sent_here.add(call.path)
        return value
    except Signal as raised:
        scope.signal(raised)
        raise
    except MilepostError as error:
        scope.failed(call, error)
        raise
    finally:
        try:
            scope.leave(call)
        finally:
            if call.under_way:  # a signal handler raised before that
                scope.leave(call)


def drive(protocol: Steps[Any], run: ActiveRun, call: RuntimeCall) -> Any:
    """Carry out a protocol to its end and return its result."""
    reply: Any = None
    error: BaseException | None = None
    while True:
        try:
            op = protocol.send(reply) if error is None else protocol.throw(error)
        except StopIteration as end:
            return end.value
        if crash.armed is not None:
            crash.armed(op.label, "before")
        reply = error = None
        try:
            if run.checking:
                only_look(run, call, op)
            reply = _PERFORM[type(op)](run, call, op)
        except BaseException as raised:  # noqa: BLE001 – the protocol hears of it where it yielded
            error = raised
        if crash.armed is not None and error is None:
            crash.armed(op.label, "durable")


def _within(run: ActiveRun, call: RuntimeCall, op: Within) -> Any:
    return drive(op.steps, run, op.call)


_PERFORM: dict[type[Op], Handler] = {**PERFORM, Within: _within}
