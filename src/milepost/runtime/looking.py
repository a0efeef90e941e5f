"""What a check may carry out of the protocol: it looks, and stops at the first thing a resume would do.

A resume writes, sends, asks the provider, waits; a check names that and leaves it. Called by both drivers.
"""

from __future__ import annotations

from milepost.errors import Signal
from milepost.protocol.ops import (
    Append,
    Ask,
    Body,
    Claim,
    Load,
    LookUp,
    Now,
    Observe,
    Op,
    Outstanding,
    Pace,
    SupplyResult,
    Verify,
    Wait,
    Within,
)
from milepost.records.times import parse_time
from milepost.runtime.active import ActiveRun
from milepost.runtime.scope import RuntimeCall

_LOOKS = (Now, Load, Observe, Body, Within, Pace, Outstanding)
"""Changes nothing that lasts; a body other than the plan's comes after the record of its start, none of these."""


class Reached(Signal):
    """A check replayed the plan up to what a resume would do next, in words."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(what)


_TO_DO = {
    "step_started": "its body would run",
    "intent_recorded": "it would be sent",
    "effect_shadowed": "it would be noted as one that would be sent; nothing is sent",
    "outcome_recorded": "its outcome is known now and would be recorded",
    "step_verified": "its checkpoint would be recorded",
    "step_failed": "its failure would be recorded",
    "run_ended": "its end would be recorded",
}
"""What a resume would do, by the record it would write."""


def only_look(run: ActiveRun, call: RuntimeCall, op: Op) -> None:
    """Let a check carry out `op`, or end it there. Raises: Reached."""
    if isinstance(op, _LOOKS) or (isinstance(op, Wait) and run.clock.now() >= parse_time(op.until)):
        return
    raise Reached(_in_words(call.path or "the run", op))


def _in_words(path: str, op: Op) -> str:
    match op:
        case Append(records=[record, *_]):
            to_do = _TO_DO.get(record.kind, f"{record.kind.replace('_', ' ')} would be recorded")
            return f"{getattr(record, 'path', '') or path} ({to_do})"
        case Ask(question=question):
            return f"would ask: {question.sentence}"
        case Wait(until=until, reason=reason):
            return f"{path} (waits until {until}: {reason})"
        case LookUp():
            return f"{path} (looked up at its provider)"
        case SupplyResult():
            return f"{path} ({_TO_DO['effect_shadowed']})"
        case Verify():
            return f"{path} (its output is verified)"
        case Claim():
            return f"{path} (its key is shared by all runs of the task: claimed, or its owner's result taken over)"
        case _:
            return path
