"""The fold: what each kind of record changes in the snapshot, one function per kind. Pure.

The runtime folds what it reads on resume and every record it appends, so there is one account of a run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from milepost.protocol.answered import ANSWERED, approval_asked, approval_given, doubt_effects, leave_unasked
from milepost.protocol.snapshot import Snapshot
from milepost.protocol.spec import own_versions
from milepost.protocol.state import ApprovalState, Send
from milepost.records.model import (
    ENDED,
    AnswerEntered,
    CancelEntered,
    Checkpoint,
    EffectRefused,
    EffectShadowed,
    HeartbeatRecorded,
    IntentRecorded,
    Outcome,
    OutcomeRecorded,
    OutputRecorded,
    QuestionAsked,
    QuestionKind,
    Record,
    RunEnded,
    RunResumed,
    RunStarted,
    RunStatus,
    SpentRecorded,
    StartReturned,
    StepFailedNoted,
    StepStarted,
    StepVerified,
    VersionsNoted,
    WaitRecorded,
)
from milepost.records.naming import body_of
from milepost.records.written import is_start_of


def fold_record(s: Snapshot, record: Record) -> None:
    """Fold one record in. Raises: KeyError when a record refers to one that is not there."""
    s.record_count += 1
    _FOLD[type(record)](s, record)
    s.used.hear(record)


def fold_start_unread(s: Snapshot, start: bytes, path: str, inputs_fingerprint: str) -> bool:
    """Fold in a step's first start, as stored, from the checkpoint that follows; False when it is another, or no first.

    The checkpoint says again what it says, but for the inputs, which `StepState.inputs` reads when they are asked for.
    Half of what a resume would read are such starts; whoever calls this has checked the seal.
    """
    if path in s.steps or not is_start_of(start, path, inputs_fingerprint):
        return False
    s.record_count += 1
    s.accepted_plan.discard(path)
    state = s.step_state(path)
    state.starts, state.counted, state.unread_start = 1, True, start
    _act_on(s.approvals, path)
    return True


def _act_on(approvals: dict[str, ApprovalState], path: str) -> None:
    """Note that what was allowed happened: from now on the answer covers each repetition of it."""
    state = approvals.get(path)
    if state is not None and state.given:
        state.acted = True


def _bring(s: Snapshot, path: str) -> None:
    """Note that a step or effect brought something, to the run and to each step around it."""
    s.has_brought = True
    while path := body_of(path):
        if path in s.steps:
            s.steps[path].progressed = True


def _run_started(s: Snapshot, r: RunStarted) -> None:
    s.started, s.versions, s.in_doubt, s.limits = r, r.versions, r.in_doubt, r.limits
    s.agents |= {r.agent} - {""}  # records of older versions name none
    s.declined = {path: ApprovalState.kept_before(path, kept, r.at) for path, kept in r.declined.items()}


def _run_resumed(s: Snapshot, r: RunResumed) -> None:
    orderly = s.status in (RunStatus.INTERRUPTED, RunStatus.WAITING, RunStatus.ASKING)
    if s.has_brought:
        s.fruitless = 0
    elif s.has_run and not orderly and s.resumes:
        s.fruitless += 1
    s.resumes, s.status, s.ended, s.limits = r.number, RunStatus.RUNNING, None, r.limits
    s.has_run = s.has_brought = False
    s.agents |= {r.agent} - {""}
    for _, send in s.open_intents():
        if send.resumed_at is None:
            send.resumed_at, send.resumed_uptime = r.at, r.uptime


def _versions_noted(s: Snapshot, r: VersionsNoted) -> None:
    if r.what:
        s.step_versions[r.what] = r.new
    else:
        s.versions = r.new
        if own_versions(r.old) != own_versions(r.new):
            s.code_order = s.record_count
            s.accepted_names.clear()  # it was another plan that a person accepted


def _cancel_entered(s: Snapshot, r: CancelEntered) -> None:
    s.cancel = r


def _run_ended(s: Snapshot, r: RunEnded) -> None:
    s.status, s.ended = RunStatus(r.status), r
    if s.status in ENDED:
        s.void, s.questions = {**s.void, **s.questions}, {}
    if s.in_doubt and not s.resumes:  # the last record that a fork copied
        doubt_effects(s)


def _step_started(s: Snapshot, r: StepStarted) -> None:
    state = s.step_state(r.path)
    s.accepted_plan.discard(r.path)
    if state.finished:
        s.reopen(r.path)
    state.counted = not state.progressed
    state.starts += state.counted
    state.progressed = False
    if state.attempt == 0 or state.reopened:
        state.first_started_at = r.at
    state.reopened = False
    if r.inputs_fingerprint != state.inputs_fingerprint:
        state.heartbeat = None  # a cursor into other inputs
    state.attempt, state.inputs_fingerprint, state.branch = r.attempt, r.inputs_fingerprint, r.branch
    state.started_with, state.unread_start = tuple(r.inputs) if r.inputs is not None else None, None
    _act_on(s.approvals, r.path)
    state.status, state.kept, state.until, state.failure = Checkpoint.IN_PROGRESS, None, None, None
    s.has_run = True


def _output_recorded(s: Snapshot, r: OutputRecorded) -> None:
    state = s.step_state(r.path)
    state.kept, state.kept_order = r, s.record_count


def _step_verified(s: Snapshot, r: StepVerified) -> None:
    state = s.step_state(r.path)
    if state.status is not Checkpoint.VERIFIED:
        s.verified_count += 1
    state.status, state.verified, state.kept = Checkpoint.VERIFIED, r, None
    state.verified_order = s.record_count
    state.attempt, state.inputs_fingerprint, state.branch = r.attempt, r.inputs_fingerprint, r.branch
    state.failure = state.until = state.accepted_inputs = state.heartbeat = None
    s.step_versions.pop(r.path, None)
    _act_on(s.reviews, r.path)
    if r.next_action:
        s.next_action = r.next_action
    _bring(s, r.path)


def _step_failed(s: Snapshot, r: StepFailedNoted) -> None:
    state = s.step_state(r.path)
    state.status, state.failure, state.kept = Checkpoint.FAILED, r, None


def _start_returned(s: Snapshot, r: StartReturned) -> None:
    state = s.step_state(r.path)
    state.starts, state.counted = max(0, state.starts - state.counted), False


def _heartbeat_recorded(s: Snapshot, r: HeartbeatRecorded) -> None:
    s.step_state(r.path).heartbeat = r


def _spent_recorded(s: Snapshot, r: SpentRecorded) -> None:
    """Only `used` counts it."""


def _wait_recorded(s: Snapshot, r: WaitRecorded) -> None:
    effect = s.effects.get(r.path)
    if effect is None:
        s.step_state(r.path).until = r.until
        return
    effect.until, effect.looks = r.until, r.look


def _intent_recorded(s: Snapshot, r: IntentRecorded) -> None:
    state = s.effect_state(r.path)
    if state.applied is not None:  # another request, allowed by a person: what was applied stays at the provider
        s.applied_count -= 1
        state.applied = None
        state.sends.clear()
    state.sends.append(Send(r))
    s.note_sent(r)
    s.accepted_plan.discard(r.path)
    if state.starts == 0:
        state.since = r.at
    state.starts += 1
    state.until = state.answer = state.failure = None
    state.looks, state.in_doubt = 0, False
    state.branch, state.intent_order = r.branch, s.record_count
    _act_on(s.approvals, r.path)
    s.has_run = True


def _effect_refused(s: Snapshot, r: EffectRefused) -> None:
    s.refused.setdefault(r.path, set()).add(r.permission)


def _outcome_recorded(s: Snapshot, r: OutcomeRecorded) -> None:
    state = s.effect_state(r.path)
    state.answer, state.looks, state.in_doubt = None, 0, False
    for send in state.sends:
        if send.intent.attempt == r.attempt or (r.recovered and send.open):
            send.outcome = r
    if r.outcome == Outcome.APPLIED:
        if state.applied is None:
            s.applied_count += 1
        state.applied, state.until, state.failure, state.allowed_anew = r, None, None, None
        leave_unasked(s, r.path)
        if r.next_action:
            s.next_action = r.next_action
        _bring(s, r.path)
    elif r.final:
        state.failure = r


def _effect_shadowed(s: Snapshot, r: EffectShadowed) -> None:
    state = s.effect_state(r.path)
    s.shadowed_count += state.shadowed is None
    state.shadowed, state.branch, state.answered_result = r, r.branch, None
    s.next_action = r.next_action or s.next_action
    s.has_run = True
    _bring(s, r.path)


def _question_asked(s: Snapshot, r: QuestionAsked) -> None:
    s.questions[r.question_id] = r
    if r.question_kind == QuestionKind.APPROVAL:
        approval_asked(s, r)


def _answer_entered(s: Snapshot, r: AnswerEntered) -> None:
    question = s.questions[r.question_id]
    if question.question_kind == QuestionKind.APPROVAL and not approval_given(s, question, r):
        return
    del s.questions[r.question_id]
    s.answered[r.question_id] = (question, r)
    if r.choice == "stop":
        s.stopped = True
    else:
        ANSWERED[QuestionKind(question.question_kind)](s, question, r)


_FOLD: dict[type[Record], Callable[[Snapshot, Any], None]] = {
    RunStarted: _run_started,
    RunResumed: _run_resumed,
    VersionsNoted: _versions_noted,
    CancelEntered: _cancel_entered,
    RunEnded: _run_ended,
    StepStarted: _step_started,
    OutputRecorded: _output_recorded,
    StepVerified: _step_verified,
    StepFailedNoted: _step_failed,
    StartReturned: _start_returned,
    HeartbeatRecorded: _heartbeat_recorded,
    SpentRecorded: _spent_recorded,
    WaitRecorded: _wait_recorded,
    IntentRecorded: _intent_recorded,
    EffectRefused: _effect_refused,
    OutcomeRecorded: _outcome_recorded,
    EffectShadowed: _effect_shadowed,
    QuestionAsked: _question_asked,
    AnswerEntered: _answer_entered,
}
