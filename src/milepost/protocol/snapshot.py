"""The snapshot: what a journal says, as `fold` gathers it record by record. Pure.

`decide` judges it; `show`, `brief` and `--check` print it. For progress only `verified` counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from milepost.protocol.state import ApprovalState, EffectState, Send, StepState
from milepost.protocol.used import Used
from milepost.records.frozen import slotted
from milepost.records.model import (
    AnswerEntered,
    CancelEntered,
    Checkpoint,
    Data,
    IntentRecorded,
    QuestionAsked,
    Record,
    RunEnded,
    RunStarted,
    RunStatus,
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
    code_order: int = 0  # how many records were folded before the task's own code was noted to be another; 0: it is not
    step_versions: dict[str, Data] = field(default_factory=dict)  # noted later than their checkpoint
    accepted_sources: dict[str, tuple[int, str | None]] = field(default_factory=dict)  # key -> order, fingerprint
    sent_items: dict[tuple[str, str | None], dict[str, IntentRecorded]] = field(default_factory=dict)  # effect, key=
    approvals: dict[str, ApprovalState] = field(default_factory=dict)  # before a send or a start, by its path
    reviews: dict[str, ApprovalState] = field(default_factory=dict)  # of an output, before its checkpoint
    declined: dict[str, ApprovalState] = field(default_factory=dict)  # of both, by path: not asked about again since
    agents: set[str] = field(default_factory=set)  # who or what ran it
    refused: dict[str, set[str]] = field(default_factory=dict)  # effect path -> permissions the task did not hold
    accepted_plan: set[str] = field(default_factory=set)  # paths that may begin, or be missed, until they begin
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
    has_run: bool = False  # a body, or a send, since the last resume
    has_brought: bool = False  # a checkpoint or an applied effect, since then

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

    def asked(self, when: str) -> dict[str, ApprovalState]:
        """Return the approvals people were asked for, by path: "before" a call, or "after" it, of its output."""
        return self.reviews if when == "after" else self.approvals

    def is_finished(self, path: str) -> bool:
        """Say whether a call has its end, be it that people declined it."""
        state = self.steps.get(path) or self.effects.get(path)
        return path in self.declined or (state is not None and state.finished)

    def left_open_in(self, path: str) -> list[tuple[EffectState, Send]]:
        """Return what was left in doubt, each with its send: this effect, or those inside of this step."""
        return [(state, left) for state in self._effects_in(path) if (left := state.left_open) is not None]

    def holds_applied(self, path: str) -> bool:
        """Say whether an effect was applied: this one, or one inside of this step."""
        return any(state.applied is not None for state in self._effects_in(path))

    def is_older_than_code(self, path: str) -> bool:
        """Say whether what stands under a path was recorded before the task's own code was changed."""
        step = self.steps.get(path)
        if step is not None and step.verified is not None:
            return step.verified_order < self.code_order
        return min((state.intent_order for state in self._effects_in(path)), default=0) < self.code_order

    def sent_as(self, path: str, request_digest: str) -> bool:
        """Say whether a call under this path, or inside of this step, sent just this, and it arrived or may have."""
        sends = (state.last for state in self._effects_in(path) if state.arrived)
        return any(send is not None and send.intent.request_digest == request_digest for send in sends)

    def _effects_in(self, path: str) -> list[EffectState]:
        if path in self.effects:
            return [self.effects[path]]
        return [state for state in list(self.effects.values()) if state.path.startswith(f"{path}/")]

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

    def note_sent(self, intent: IntentRecorded) -> None:
        """Remember under which path an effect was sent for its `key=`."""
        self.sent_items.setdefault((intent.effect, intent.item_key), {})[intent.path] = intent

    def reopen(self, path: str) -> None:
        state = self.steps.get(path)
        if state is None:
            return
        if state.status is Checkpoint.VERIFIED:
            self.verified_count -= 1
        state.status, state.verified, state.kept, state.failure = Checkpoint.IN_PROGRESS, None, None, None
        state.starts, state.reopened, state.until = 0, True, None
