"""Where one step and one effect stand: what the fold of a journal keeps of them. Pure data; `snapshot` fills it."""

from __future__ import annotations

from dataclasses import dataclass, field

from milepost.records.model import (
    AnswerEntered,
    Checkpoint,
    EffectShadowed,
    HeartbeatRecorded,
    IntentRecorded,
    Outcome,
    OutcomeRecorded,
    OutputRecorded,
    Pointer,
    StepFailedNoted,
    StepVerified,
)


@dataclass(slots=True)
class StepState:
    """Where one step stands."""

    path: str
    status: Checkpoint = Checkpoint.IN_PROGRESS
    attempt: int = 0  # the last one started
    starts: int = 0  # that count against the policy
    counted: bool = False  # the last start does
    progressed: bool = False  # something inside was verified or applied since the last start
    first_started_at: str = ""
    branch: bool = False
    inputs_fingerprint: str = ""
    inputs: Pointer | None = None
    accepted_inputs: str | None = None  # a person said: keep although the inputs differ
    verified: StepVerified | None = None
    verified_order: int = 0  # how many records were folded before its checkpoint
    kept: OutputRecorded | None = None  # the body ended, verification did not
    failure: StepFailedNoted | None = None
    heartbeat: HeartbeatRecorded | None = None
    until: str | None = None
    reopened: bool = False

    @property
    def finished(self) -> bool:
        return self.status is Checkpoint.VERIFIED or (self.failure is not None and self.failure.final)


@dataclass(slots=True)
class Send:
    """One send of an effect: its intent and, when known, what became of it."""

    intent: IntentRecorded
    outcome: OutcomeRecorded | None = None
    resumed_at: str | None = None  # first resume after the intent: its process was dead by then
    heard_ticks: float | None = None  # of this process, when it heard how the send ended; never recorded

    @property
    def open(self) -> bool:
        return self.outcome is None or self.outcome.outcome == Outcome.UNKNOWN


@dataclass(slots=True)
class EffectState:
    """Where one effect stands. `applied` is final."""

    path: str
    branch: bool = False
    sends: list[Send] = field(default_factory=list)
    applied: OutcomeRecorded | None = None
    starts: int = 0
    since: str = ""  # first send that counts against the policy's deadline
    looks: int = 0  # lookups in a row that could not tell
    failure: OutcomeRecorded | None = None  # final: the plan was told so
    until: str | None = None
    accepted_request: str | None = None  # digest: keep what was applied although the request differs
    send_new: tuple[str, int] | None = None  # digest and number of the answer that allows another request
    answer: AnswerEntered | None = None  # to outcome_unknown, not yet acted on
    answered_result: Pointer | None = None
    shadowed: EffectShadowed | None = None  # of a shadow run: it would have been sent
    in_doubt: bool = False  # the store went back: there may have been sends after the last one recorded

    @property
    def finished(self) -> bool:
        return self.applied is not None or self.failure is not None or self.shadowed is not None

    def sends_anew(self, request_digest: str) -> bool:
        """Say whether a person allowed to send exactly this request besides what was applied."""
        return self.send_new is not None and self.send_new[0] == request_digest

    @property
    def open_sends(self) -> list[Send]:
        return [] if self.applied else [send for send in self.sends if send.open]

    @property
    def last(self) -> Send | None:
        return self.sends[-1] if self.sends else None
