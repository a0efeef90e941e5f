"""The snapshot: what a journal says, folded record by record. Pure.

The runtime folds what it reads on resume and every record it appends, so there is one account of a run.
`decide` judges it; `show`, `brief` and `--check` print it. For progress only `verified` counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import Any

from milepost.protocol.answered import ANSWERED, approval_asked, approval_given, doubt_effects, leave_unasked
from milepost.protocol.state import ApprovalState, EffectState, Send, StepState
from milepost.protocol.used import Used
from milepost.records.frozen import slotted
from milepost.records.model import (
    ENDED,
    AnswerEntered,
    CancelEntered,
    Checkpoint,
    Data,
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


@slotted
class Snapshot:
    """What the journal of one run says."""

    started: RunStarted | None = None
    status: RunStatus = RunStatus.RUNNING
    steps: dict[str, StepState] = field(default_factory=dict)
    effects: dict[str, EffectState] = field(default_factory=dict)
    children: dict[str, list[str]] = field(default_factory=dict)  # body path -> paths in order of first record
    questions: dict[str, QuestionAsked] = field(default_factory=dict)  # asked and not answered
    void: dict[str, QuestionAsked] = field(default_factory=dict)  # the run ended without their answer
    answered: dict[str, tuple[QuestionAsked, AnswerEntered]] = field(default_factory=dict)
    versions: Data = field(default_factory=dict)  # of the task, as last noted
    step_versions: dict[str, Data] = field(default_factory=dict)  # noted later than their checkpoint
    accepted_sources: dict[str, tuple[int, str | None]] = field(default_factory=dict)  # key -> order, fingerprint
    sent_items: dict[tuple[str, str | None], list[str]] = field(default_factory=dict)  # effect, key= -> paths
    approvals: dict[str, ApprovalState] = field(default_factory=dict)  # before a send or a start, by its path
    reviews: dict[str, ApprovalState] = field(default_factory=dict)  # of an output, before its checkpoint
    declined: dict[str, ApprovalState] = field(default_factory=dict)  # of both, by path: not asked about again since
    agents: set[str] = field(default_factory=set)  # who or what ran it
    refused: dict[str, set[str]] = field(default_factory=dict)  # effect path -> permissions the task did not hold
    accepted_plan: set[str] = field(default_factory=set)
    accepted_names: set[str] = field(default_factory=set)  # body/declared name: every call of it there
    redo_at: str = ""  # a person said redo: steps finished before that reopen without asking when inputs differ
    redoing_versions: bool = False  # and those that other versions made
    in_doubt: bool = False
    stopped: bool = False
    cancel: CancelEntered | None = None
    ended: RunEnded | None = None
    resumes: int = 0
    fruitless: int = 0  # resumes in a row that ran something and brought nothing
    verified_count: int = 0
    applied_count: int = 0
    shadowed_count: int = 0  # of what was read: those inside verified steps are not
    next_action: str = ""
    used: Used = field(default_factory=Used)
    limits: Data = field(default_factory=dict)  # of the task, as declared when it was last opened
    record_count: int = 0
    _segment_ran: bool = False
    _segment_brought: bool = False

    def apply(self, record: Record) -> None:
        """Fold one record in. Raises: KeyError when a record refers to one that is not there."""
        self.record_count += 1
        _FOLD[type(record)](self, record)
        self.used.hear(record)

    @property
    def is_shadow(self) -> bool:
        """Say whether no effect of this run is ever sent."""
        return self.started is not None and self.started.shadow

    def open_intents(self) -> Iterator[tuple[EffectState, Send]]:
        """Yield every open intent, oldest first."""
        for state in self.effects.values():
            for send in state.open_sends:
                yield state, send

    def open_within(self, path: str) -> Iterator[tuple[EffectState, Send]]:
        """Yield the open intents of one body and of those inside it. No step with one of them is verified."""
        for child in self.children.get(path, ()):
            effect = self.effects.get(child)
            for send in effect.open_sends if effect is not None else ():
                yield self.effects[child], send
            yield from self.open_within(child)

    def in_progress(self) -> Iterator[StepState]:
        """Yield the steps that were started and not finished."""
        return (s for s in self.steps.values() if not s.finished and s.attempt)

    def redoes(self, path: str) -> bool:
        """Say whether a person's redo covers what was finished under this path: it was finished before that."""
        if not self.redo_at:
            return False
        step, effect = self.steps.get(path), self.effects.get(path)
        done: Record | None = (step.verified or step.failure) if step is not None else None
        if effect is not None:
            done = effect.applied or effect.failure
        if done is None and path in self.declined:
            done = self.declined[path].declined
        return done is not None and done.at <= self.redo_at

    def counts(self, path: str) -> bool:
        """Say whether a record still counts: no step around it is verified."""
        return self.counts_in(body_of(path))

    def counts_in(self, body: str) -> bool:
        """Say whether the records of a body, one chain, still count: neither it nor a step around it is verified."""
        while body:
            if (step := self.steps.get(body)) is not None and step.status is Checkpoint.VERIFIED:
                return False
            body = body_of(body)
        return True

    def step_state(self, path: str) -> StepState:
        state = self.steps.get(path)
        if state is None:
            state = self.steps[path] = StepState(path)
            self.children.setdefault(body_of(path), []).append(path)
        return state

    def effect_state(self, path: str) -> EffectState:
        state = self.effects.get(path)
        if state is None:
            state = self.effects[path] = EffectState(path)
            self.children.setdefault(body_of(path), []).append(path)
        return state

    def act_on(self, approvals: dict[str, ApprovalState], path: str) -> None:
        """Note that what was allowed happened: from now on the answer covers each repetition of it."""
        state = approvals.get(path)
        if state is not None and state.given:
            state.acted = True

    def _brought(self, path: str) -> None:
        self._segment_brought = True
        while path := body_of(path):
            if path in self.steps:
                self.steps[path].progressed = True

    def reopen(self, path: str) -> None:
        state = self.steps.get(path)
        if state is None:
            return
        if state.status is Checkpoint.VERIFIED:
            self.verified_count -= 1
        state.status, state.verified, state.kept, state.failure = Checkpoint.IN_PROGRESS, None, None, None
        state.starts, state.reopened, state.until = 0, True, None


# ── folding, one function per kind of record ────────────────────────────────────────────────────────


def _run_started(s: Snapshot, r: RunStarted) -> None:
    s.started, s.versions, s.in_doubt, s.limits = r, r.versions, r.in_doubt, r.limits
    s.agents |= {r.agent} - {""}  # records of older versions name none
    s.declined = {path: ApprovalState.kept_before(path, kept, r.at) for path, kept in r.declined.items()}


def _run_resumed(s: Snapshot, r: RunResumed) -> None:
    orderly = s.status in (RunStatus.INTERRUPTED, RunStatus.WAITING, RunStatus.ASKING)
    if s._segment_brought:
        s.fruitless = 0
    elif s._segment_ran and not orderly and s.resumes:
        s.fruitless += 1
    s.resumes, s.status, s.ended, s.limits = r.number, RunStatus.RUNNING, None, r.limits
    s._segment_ran = s._segment_brought = False
    s.agents |= {r.agent} - {""}
    for _, send in s.open_intents():
        if send.resumed_at is None:
            send.resumed_at, send.resumed_uptime = r.at, r.uptime


def _versions_noted(s: Snapshot, r: VersionsNoted) -> None:
    if r.what:
        s.step_versions[r.what] = r.new
    else:
        s.versions = r.new


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
    s.act_on(s.approvals, r.path)
    state.status, state.kept, state.until, state.failure = Checkpoint.IN_PROGRESS, None, None, None
    s._segment_ran = True


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
    s.act_on(s.reviews, r.path)
    if r.next_action:
        s.next_action = r.next_action
    s._brought(r.path)


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
    s.sent_items.setdefault((r.effect, r.item_key), []).append(r.path)
    if state.starts == 0:
        state.since = r.at
    state.starts += 1
    state.until = state.answer = state.failure = None
    state.looks, state.in_doubt = 0, False
    state.branch = r.branch
    s.act_on(s.approvals, r.path)
    s._segment_ran = True


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
        state.applied, state.until, state.failure, state.send_new = r, None, None, None
        leave_unasked(s, r.path)
        if r.next_action:
            s.next_action = r.next_action
        s._brought(r.path)
    elif r.final:
        state.failure = r


def _effect_shadowed(s: Snapshot, r: EffectShadowed) -> None:
    state = s.effect_state(r.path)
    s.shadowed_count += state.shadowed is None
    state.shadowed, state.branch, state.answered_result = r, r.branch, None
    s.next_action = r.next_action or s.next_action
    s._segment_ran = True
    s._brought(r.path)


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


def parse_time(text: str) -> datetime:
    """Read a record's UTC time."""
    return datetime.fromisoformat(text)


def format_time(moment: datetime) -> str:
    """Write a UTC time as records hold it: ISO 8601, microseconds, `+00:00`."""
    global _last
    second, text = _last
    passed = moment - second
    if passed.days or passed.seconds:
        second = moment.astimezone(UTC).replace(microsecond=0)
        passed, text = moment - second, second.isoformat()[:-6]
        _last = second, text
    return f"{text}.{passed.microseconds:06d}+00:00"


_last = datetime.fromtimestamp(0, UTC), "1970-01-01T00:00:00"
"""The last second that was written, and how: it is the same for many a step, and `isoformat` takes thrice as long."""


def age(since: str, now: datetime) -> timedelta | None:
    """Return how long ago `since` was; None (cannot tell) when the clock ran backward past it."""
    passed = now - parse_time(since)
    return passed if passed >= timedelta(0) else None
