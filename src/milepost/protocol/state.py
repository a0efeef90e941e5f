"""Where one step and one effect stand: what the fold of a journal keeps of them. Pure data; `snapshot` fills it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple

from milepost.records.canonical import Json
from milepost.records.frozen import frozen, slotted
from milepost.records.model import (
    AnswerEntered,
    Checkpoint,
    Data,
    EffectShadowed,
    HeartbeatRecorded,
    IntentRecorded,
    Outcome,
    OutcomeRecorded,
    OutputRecorded,
    Pointer,
    QuestionAsked,
    QuestionKind,
    StepFailedNoted,
    StepStarted,
    StepVerified,
)
from milepost.records.written import decode_record


@slotted
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
    started_with: tuple[Any, ...] | None = None  # a pointer's fields: a plain tuple is nothing to the collector
    unread_start: bytes | None = None  # the stored start instead: its checkpoint says all else that is asked of it
    accepted_inputs: str | None = None  # a person said: keep although the inputs differ
    verified: StepVerified | None = None
    verified_order: int = 0  # how many records were folded before its checkpoint
    kept: OutputRecorded | None = None  # the body ended, verification did not
    kept_order: int = 0  # how many records were folded before that
    failure: StepFailedNoted | None = None
    heartbeat: HeartbeatRecorded | None = None
    until: str | None = None
    reopened: bool = False

    @property
    def inputs(self) -> Pointer | None:
        """Return what was kept of the inputs of the last start."""
        if self.unread_start is None:
            return Pointer(*self.started_with) if self.started_with is not None else None
        start = decode_record(StepStarted.kind, self.unread_start)
        return start.inputs if isinstance(start, StepStarted) else None

    @property
    def finished(self) -> bool:
        return self.status is Checkpoint.VERIFIED or (self.failure is not None and self.failure.final)


@slotted
class Send:
    """One send of an effect: its intent and, when known, what became of it."""

    intent: IntentRecorded
    outcome: OutcomeRecorded | None = None
    resumed_at: str | None = None  # first resume after the intent: its process was dead by then
    resumed_uptime: str | None = None  # of the machine, then
    heard_ticks: float | None = None  # of this process, when it heard how the send ended; never recorded

    @property
    def open(self) -> bool:
        return self.outcome is None or self.outcome.outcome == Outcome.UNKNOWN


def settled_after(question: QuestionAsked, choices: Sequence[str]) -> int:
    """Return how many of the accepted answers, in their order, settle a question; 0 while more are needed.

    One does, unless several must approve: then so many, or the first that says anything else.
    """
    needed = int(question.about.get("approvals", 1))
    for number, choice in enumerate(choices, 1):
        if choice != "approve" or number >= needed:
            return number
    return 0


@frozen
class Edit:
    """Arguments that a person put in the place of the plan's: where they are, by whom, in answer to what."""

    arguments: Pointer
    by: str
    question_id: str

    def to_json(self) -> dict[str, Json]:
        return {"arguments": self.arguments.to_json(), "by": self.by, "question_id": self.question_id}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Edit:
        return Edit(Pointer(**data["arguments"]), data["by"], data["question_id"])


@slotted
class ApprovalState:
    """The last question whether a call may happen, and what was entered of its answers: nothing, or what settles it."""

    question: QuestionAsked
    order: int  # how many records were folded before it
    given: list[AnswerEntered] = field(default_factory=list)
    acted: bool = False  # an intent, a start or a checkpoint rests on it
    reached: bool = False  # declined, and the plan called it again in this process; never recorded

    @property
    def declined(self) -> AnswerEntered | None:
        """Return the answer that declined it, None when none did."""
        last = self.given[-1] if self.given else None
        return last if last is not None and last.choice == "decline" else None

    def kept_by_a_fork(self, run_id: str) -> Data:
        """Return a decline as a fork of the run keeps it: it is asked about anew, wherever the plan calls it."""
        answer, about = self.declined, self.question.about
        assert answer is not None
        said: Data = {"by": answer.by, "at": answer.at, "note": answer.note}
        return {**said, "about": {"declined_in": run_id, **about, "own_line": False}}

    @staticmethod
    def kept_before(path: str, kept: Mapping[str, Any], at: str) -> ApprovalState:
        """Return a decline that a fork kept."""
        facts = {"question_kind": QuestionKind.APPROVAL.value, "sentence": "", "choices": (), "about": kept["about"]}
        said = {"by": kept["by"], "answered_at": kept["at"], "note": kept["note"]}
        question = QuestionAsked(at=at, question_id="", path=path, **facts)
        answer = AnswerEntered(at=kept["at"], question_id="", choice="decline", **said)
        return ApprovalState(question, 0, [answer])

    @property
    def needed(self) -> int:
        return int(self.question.about["approvals"])

    @property
    def edit(self) -> Edit | None:
        """Return the edit that stands: made in answer to this question, or before it and asked about in it."""
        last = self.given[-1] if self.given else None
        if last is not None and last.request is not None:
            return Edit(last.request, last.by, last.question_id)
        before = self.question.about.get("edit")
        return Edit.from_json(before) if before is not None else None


class NewSend(NamedTuple):
    """A request that a person allowed to send besides the one that was applied."""

    request_digest: str
    number: int  # of the answer: it is part of its key
    question_id: str


@slotted
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
    allowed_anew: NewSend | None = None
    answer: AnswerEntered | None = None  # to outcome_unknown, not yet acted on
    answered_result: Pointer | None = None
    shadowed: EffectShadowed | None = None  # of a shadow run: it would have been sent
    in_doubt: bool = False  # the store went back: there may have been sends after the last one recorded
    intent_order: int = 0  # how many records were folded before its last intent
    not_found: bool = False  # a lookup of this process found nothing of its open sends; never recorded

    @property
    def finished(self) -> bool:
        return self.applied is not None or self.failure is not None or self.shadowed is not None

    def new_send(self, request_digest: str) -> NewSend | None:
        """Return what a person allowed besides what was applied, when it is exactly this request."""
        anew = self.allowed_anew
        return anew if anew is not None and anew.request_digest == request_digest else None

    @property
    def open_sends(self) -> list[Send]:
        return [] if self.applied else [send for send in self.sends if send.open]

    @property
    def left_open(self) -> Send | None:
        """Return the first send that a process which is gone left open, unless its provider knows nothing of it.

        What stands in the place of a send that did not arrive is no second one.
        """
        sends = () if self.not_found else self.open_sends
        return next((send for send in sends if send.resumed_at is not None), None)

    @property
    def arrived(self) -> bool:
        """Say whether its provider has it, or may have it from a process that is gone."""
        return self.applied is not None or self.left_open is not None

    @property
    def last(self) -> Send | None:
        return self.sends[-1] if self.sends else None
