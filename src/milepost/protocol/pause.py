"""A durable sleep: an absolute time, recorded once; a restart neither resets nor shortens it. Pure."""

from __future__ import annotations

from datetime import timedelta

from milepost.protocol.call import Call
from milepost.protocol.keep import beside
from milepost.protocol.ops import Append, Moment, Now, Steps, Wait
from milepost.protocol.spec import StepSpec
from milepost.protocol.step import settle_changes
from milepost.records.model import StepStarted, StepVerified, WaitRecorded
from milepost.records.times import format_time


def pause(call: Call[StepSpec]) -> Steps[None]:
    """Wait until the recorded time; the first time, record it.

    Crash: before the record, the sleep has not begun; after it, what is left is waited for.
    """
    yield from settle_changes(call)
    state = call.step
    if state is not None and state.verified is not None:
        return
    now: Moment = yield Now()
    until = state.until if state is not None else None
    if until is None:
        until = format_time(now.at + timedelta(seconds=float(call.bound["seconds"])))
        started = StepStarted(
            at=now.text, path=call.path, attempt=1, inputs_fingerprint=call.fingerprint, branch=call.branch
        )
        waits = WaitRecorded(at=now.text, path=call.path, until=until, reason="sleep")
        yield Append((started, waits), wait=True, starts=True)
    yield Wait(until, f"{call.path} sleeps")
    now = yield Now()
    nothing = beside(b"null")
    record = StepVerified(
        at=now.text,
        path=call.path,
        attempt=1,
        inputs_fingerprint=call.fingerprint,
        output=nothing.pointer,
        branch=call.branch,
    )
    yield Append((record,), (nothing,))
