"""Staying within a task's limits: before a step starts or an effect is sent, ask when one is used up, wait for a rate.

Pure. Called by `step` and `effect`; on resume the same is looked at by `decide`.
"""

from __future__ import annotations

from typing import Any

from milepost.protocol.call import Call
from milepost.protocol.ops import Ask, Moment, Pace, Steps, Wait
from milepost.protocol.questions import ask, counted
from milepost.protocol.snapshot import Snapshot
from milepost.protocol.used import Use, first_reached
from milepost.records.model import QuestionKind


def stay_within(call: Call[Any], now: Moment) -> Steps[Moment]:
    """Ask when a limit of the task is used up, else return the moment it is. Never goes on when it asks.

    Branches that find the same limit used up ask once.
    """
    if call.task.limits is None:
        return now
    use = first_reached(call.task.limits, call.snapshot.used, now.at)
    if use is not None:
        yield limit_question(use, call.snapshot, run_id=call.run_id, at=now.text, path=call.path)
    return now


def keep_pace(call: Call[Any]) -> Steps[bool]:
    """Wait until the task's rate allows one more send; say whether that took time.

    What was sent is in the journal: a restart forgets nothing.
    """
    rate = call.task.limits.sends if call.task.limits is not None else None
    if rate is None:
        return False
    until: str | None = yield Pace(rate)
    if until is None:
        return False
    yield Wait(until, f"{call.path} keeps to {counted(rate.count, 'send')} in {rate.per}")
    return True


def limit_question(use: Use, s: Snapshot, *, run_id: str, at: str, path: str = "") -> Ask:
    """Build the question about a limit that is used up; it is asked once, however many branches find it so."""
    before = f" before {path}" if path else ""
    return ask(
        QuestionKind.LIMIT_REACHED,
        s,
        run_id=run_id,
        at=at,
        sentence=f"A limit of the task is used up{before}: {use}.",
        evidence={"limit": use.name, "used": str(use.used), "allowed": str(use.allowed), "next": path},
        about={"limit": use.name},
        once=use.name,
    )
