"""What each kind of record says in one line, for `journal`, the live view and `show`. Pure; data is not yet inert."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from milepost.protocol.spec import changed_versions
from milepost.records.model import (
    AnswerEntered,
    CancelEntered,
    EffectRefused,
    EffectShadowed,
    HeartbeatRecorded,
    IntentRecorded,
    Outcome,
    OutcomeRecorded,
    OutputRecorded,
    QuestionAsked,
    Record,
    RunEnded,
    RunResumed,
    RunStarted,
    SpentRecorded,
    StartReturned,
    StepFailedNoted,
    StepStarted,
    StepVerified,
    VersionsNoted,
    WaitRecorded,
)
from milepost.views.words import clock_time, cost, lasting


def summary(record: Record) -> str:
    """Say a record in one line, without its time and path."""
    return _SAYS[type(record)](record)


def _run_started(r: RunStarted) -> str:
    fork = f", forked from {r.forked_from} before {r.forked_at}" if r.forked_from else ""
    shadow = " as a SHADOW: no effect is sent" if r.shadow else ""
    return f"task {r.task} started in {r.folder}{fork}{shadow}"


def _run_resumed(r: RunResumed) -> str:
    return f"resumed (number {r.number}) by process {r.holder.get('pid')} on {r.holder.get('host')}"


def _versions_noted(r: VersionsNoted) -> str:
    return f"versions of {r.what or 'the task'} changed: {changed_versions(r.old, r.new)}"


def _cancel_entered(r: CancelEntered) -> str:
    return f"cancelled by {r.by}" + (f": {r.note}" if r.note else "")


def _run_ended(r: RunEnded) -> str:
    return f"{r.status}" + (f" at {r.path}" if r.path else "") + (f": {r.error}" if r.error else "")


def _spent_recorded(r: SpentRecorded) -> str:
    return f"spent {cost(r.spent)}"


def _step_started(r: StepStarted) -> str:
    return "started" + (f", attempt {r.attempt}" if r.attempt > 1 else "")


def _output_recorded(r: OutputRecorded) -> str:
    return f"output kept ({r.output.size:,} bytes), to be verified"


def _step_verified(r: StepVerified) -> str:
    checks = f", checks: {', '.join(r.checks)}" if r.checks else ""
    spent = f", {cost(r.spent)}" if r.spent else ""
    return f"verified in {lasting(r.duration_s)}{checks}{spent}"


def _step_failed(r: StepFailedNoted) -> str:
    return f"attempt {r.attempt} failed{' for good' if r.final else ''}: {r.error}"


def _start_returned(r: StartReturned) -> str:
    return f"attempt {r.attempt} was stopped in order and does not count"


def _heartbeat(r: HeartbeatRecorded) -> str:
    return how_far(r) + (f", {r.note}" if r.note else "")


def how_far(r: HeartbeatRecorded) -> str:
    """Say how much of a step is done."""
    return f"{r.done}" if r.total is None else f"{r.done} of {r.total}"


def _wait(r: WaitRecorded) -> str:
    return f"waits until {clock_time(r.until)}: {r.reason}"


def _intent(r: IntentRecorded) -> str:
    return f"about to send to {r.provider}, key {r.key}" + (f", attempt {r.attempt}" if r.attempt > 1 else "")


def _refused(r: EffectRefused) -> str:
    return f"refused: it needs the permission {r.permission}, the task held {', '.join(r.held) or 'none'}"


def _shadowed(r: EffectShadowed) -> str:
    ask = f", after {r.would_ask}" if r.would_ask else ""
    return f"SHADOW: would have been sent to {r.provider}{ask}, key {r.key}; nothing was"


def _outcome(r: OutcomeRecorded) -> str:
    if r.outcome != Outcome.APPLIED:
        return f"{r.outcome}{' for good' if r.final else ''}" + (f": {r.error}" if r.error else "")
    marks = "".join(f", {mark}" for mark in outcome_marks(r))
    return f"applied in {lasting(r.duration_s)}" + (f", reference {r.ref}" if r.ref else "") + marks


def outcome_marks(r: OutcomeRecorded) -> list[str]:
    """Return how an applied outcome became known, when not by the send's own answer."""
    marks = ["recovered"] if r.recovered else []
    marks += [f"adopted from {r.adopted}"] if r.adopted else []
    marks += ["landed late"] if r.late else []
    return marks


def _question(r: QuestionAsked) -> str:
    return f"asks ({r.question_id}): {r.sentence}"


def _answer(r: AnswerEntered) -> str:
    return f"{r.question_id} answered {r.choice} by {r.by}" + (f": {r.note}" if r.note else "")


_SAYS: dict[type[Record], Callable[[Any], str]] = {
    RunStarted: _run_started,
    RunResumed: _run_resumed,
    VersionsNoted: _versions_noted,
    CancelEntered: _cancel_entered,
    RunEnded: _run_ended,
    SpentRecorded: _spent_recorded,
    StepStarted: _step_started,
    OutputRecorded: _output_recorded,
    StepVerified: _step_verified,
    StepFailedNoted: _step_failed,
    StartReturned: _start_returned,
    HeartbeatRecorded: _heartbeat,
    WaitRecorded: _wait,
    IntentRecorded: _intent,
    EffectRefused: _refused,
    EffectShadowed: _shadowed,
    OutcomeRecorded: _outcome,
    QuestionAsked: _question,
    AnswerEntered: _answer,
}
"""One for each kind of record; a test holds this complete."""
