"""What a journal holds: one frozen class per kind of record. How they become bytes is in `written`.

A record is data (JSON), readable without the code that wrote it. Outputs, inputs, evidence and source
lists are artifacts; a record only points at them. Nothing here reads a clock, draws chance or does I/O.
Called by the protocol (which builds records) and by the runtime (which appends and folds them).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypeVar, dataclass_transform

from milepost.records.frozen import frozen, frozen_by_name
from milepost.records.naming import body_of
from milepost.records.statuses import ENDED as ENDED
from milepost.records.statuses import Checkpoint as Checkpoint
from milepost.records.statuses import Outcome as Outcome
from milepost.records.statuses import QuestionKind as QuestionKind
from milepost.records.statuses import RunStatus as RunStatus

RECORD_SIZE_MAX = 8 * 1024
"""Bytes a start or a checkpoint may take (design §4); checked before the body runs."""
ERROR_SIZE_MAX = 2 * 1024
"""Bytes of an error text kept in a record; the rest is cut."""
ARTIFACT_ROW_MAX = 64 * 1024
"""Bytes up to which an artifact is a row beside its record; larger ones are files."""

Data: TypeAlias = Mapping[str, Any]


class Pointer(NamedTuple):
    """Where an artifact is: SHA-256 of its bytes (hex), size in bytes, media type, `row` or `file`."""

    digest: str
    size: int
    media_type: str = "application/json"
    where: str = "row"

    def to_json(self) -> dict[str, Any]:
        return {"digest": self.digest, "media_type": self.media_type, "size": self.size, "where": self.where}


@frozen
class Choice:
    """One way to answer a question: its name, what it will do, and what must come with it."""

    name: str
    does: str
    needs: tuple[str, ...] = ()  # "ref", "result"

    def to_json(self) -> dict[str, Any]:
        return {"does": self.does, "name": self.name, "needs": list(self.needs)}


@frozen
class ErrorRecord:
    """An exception as data: its class by name, its text cut at 2 KiB. Needs no class to be read."""

    type: str
    text: str

    def to_json(self) -> dict[str, Any]:
        return {"text": self.text, "type": self.type}

    def __str__(self) -> str:
        return f"{self.type}: {self.text}" if self.text else self.type


KINDS: dict[str, type[Record]] = {}
R = TypeVar("R", bound="Record")


@frozen_by_name
class Record:
    """Base of all records. `at` is the UTC time it was built, ISO 8601 with `Z`."""

    kind: ClassVar[str] = ""
    at: str

    def chain(self) -> str:
        """Return the path of the body in whose chain this record stands; '' is the task's own."""
        path: str = getattr(self, "path", "")
        return body_of(path) if "/" in path else ""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def kind(name: str) -> Callable[[type[R]], type[R]]:
    """Make a class of records, under the name its rows carry for ever."""

    def make(cls: type[R]) -> type[R]:
        cls.kind = name
        KINDS[name] = made = frozen_by_name(cls)
        return made

    return make


# ── the run ─────────────────────────────────────────────────────────────────────────────────────────


@kind("run_started")
class RunStarted(Record):
    task: str
    target: str  # how to import it again: FILE.py:NAME or MODULE:NAME
    folder: str  # working folder at the start
    inputs: Pointer
    inputs_fingerprint: str
    versions: Data
    family: str
    forked_from: str | None = None
    forked_at: str | None = None  # the step it was forked from
    in_doubt: bool = False  # the fork could not read everything its family sent, or its store went back
    shadow: bool = False  # no effect is ever sent; for ever
    promotion: str | None = None  # the run that promoted the task, where it needs one
    sources: Pointer | None = None  # files among the inputs
    limits: Data = field(default_factory=dict)  # of the task, as declared then
    permissions: tuple[str, ...] = ()  # what the task held
    agent: str = ""  # who or what runs it; nobody by that name approves what it asks
    declined: Data = field(default_factory=dict)  # of a fork: path -> what people declined in its family, is asked anew


@kind("run_resumed")
class RunResumed(Record):
    number: int  # 1 is the first resume
    token: int
    holder: Data
    limits: Data = field(default_factory=dict)  # of the task, as declared now
    agent: str = ""
    uptime: str | None = None  # of the machine: the name of its boot, seconds since then


@kind("versions_changed")
class VersionsNoted(Record):
    """Old and new version of the task (path '') or of a step, noted and gone on."""

    what: str  # '' for the task, else the step's path
    old: Data
    new: Data


@kind("cancel_entered")
class CancelEntered(Record):
    by: str
    note: str = ""


@kind("run_ended")
class RunEnded(Record):
    """A journey's end or stop: any status but `running`. Only ENDED ones are final."""

    status: str
    output: Pointer | None = None
    files: Pointer | None = None
    error: ErrorRecord | None = None
    path: str | None = None  # the step at which it failed
    until: str | None = None  # the time a waiting run waits for
    reason: str | None = None  # and why

    def chain(self) -> str:
        return ""


# ── steps ───────────────────────────────────────────────────────────────────────────────────────────


@kind("step_started")
class StepStarted(Record):
    path: str
    attempt: int
    inputs_fingerprint: str
    inputs: Pointer | None = None
    branch: bool = False  # called away from its body's own line


@kind("output_recorded")
class OutputRecorded(Record):
    """The body ended and its output is kept; verification follows."""

    path: str
    attempt: int
    output: Pointer
    files: Pointer | None = None
    sources: Pointer | None = None
    spent: Data | None = None
    duration_s: float = 0.0


@kind("step_verified")
class StepVerified(Record):
    """The checkpoint: verification and advance in one record."""

    path: str
    attempt: int
    inputs_fingerprint: str
    output: Pointer
    files: Pointer | None = None  # manifest of the files in the output
    sources: Pointer | None = None  # manifest of what was read, written or returned
    checks: tuple[str, ...] = ()
    versions: Data = field(default_factory=dict)
    next_action: str = ""
    spent: Data | None = None  # tokens, cost
    duration_s: float = 0.0
    branch: bool = False
    inner_head: str | None = None  # seal of the last record of its own chain
    inner_count: int | None = None


@kind("step_failed")
class StepFailedNoted(Record):
    """An attempt ended in an exception or a failed verification. `final` means the plan was told so."""

    path: str
    attempt: int
    error: ErrorRecord
    final: bool = False
    duration_s: float = 0.0


@kind("start_returned")
class StartReturned(Record):
    """An orderly stop gives the start back: this attempt does not count."""

    path: str
    attempt: int


@kind("heartbeat_recorded")
class HeartbeatRecorded(Record):
    path: str
    attempt: int
    done: int
    total: int | None = None
    note: str = ""
    cursor: Data | None = None  # {"value": …}, what the next attempt can read


@kind("spent_recorded")
class SpentRecorded(Record):
    """Model usage said while a body runs, so that a limit counts it although the body may never end."""

    path: str
    attempt: int
    spent: Data


@kind("wait_recorded")
class WaitRecorded(Record):
    """An absolute time before which `path` does not go on."""

    path: str
    until: str
    reason: str
    look: int = 0  # after so many lookups in a row that could not tell


# ── effects ─────────────────────────────────────────────────────────────────────────────────────────


@kind("intent_recorded")
class IntentRecorded(Record):
    """Durable before each send: what exactly will be sent, to whom, under which key."""

    path: str
    effect: str
    attempt: int
    key: str
    provider: str
    request: Pointer
    request_digest: str
    item_key: str | None = None  # the declared key=, for matching under another path
    versions: Data = field(default_factory=dict)
    answer: str | None = None  # the question whose answer allows it
    branch: bool = False
    permission: str | None = None  # that the effect needs and the task held
    uptime: str | None = None  # as of a resume


@kind("effect_refused")
class EffectRefused(Record):
    """An effect whose permission the task does not hold: no intent, nothing sent, and the plan was told so."""

    path: str
    effect: str
    permission: str
    held: tuple[str, ...] = ()


@kind("outcome_recorded")
class OutcomeRecorded(Record):
    path: str
    attempt: int
    outcome: str
    key: str
    ref: str | None = None
    result: Pointer | None = None
    files: Pointer | None = None
    recovered: bool = False  # found by lookup, not answered by the send
    adopted: str | None = None  # run whose applied outcome of the same key was taken over
    late: bool = False  # a send given up earlier landed after all
    request_digest: str | None = None  # of what was applied, where no intent of this run says it
    error: ErrorRecord | None = None
    final: bool = False  # rejected or failed for good: the plan was told so
    next_action: str = ""
    spent: Data | None = None
    duration_s: float = 0.0
    uptime: str | None = None  # as of a resume, when it was heard; of `unknown` only


@kind("effect_shadowed")
class EffectShadowed(Record):
    """Of a shadow run, instead of intent and outcome: what would have been sent, under which key. Nothing was."""

    path: str
    effect: str
    key: str
    provider: str
    request: Pointer
    request_digest: str
    item_key: str | None = None
    permission: str | None = None
    versions: Data = field(default_factory=dict)
    result: Pointer | None = None  # what stood in for the provider's; None: a person gives it
    would_ask: str = ""  # which approval a live run would ask for
    next_action: str = ""
    branch: bool = False


# ── people ──────────────────────────────────────────────────────────────────────────────────────────


@kind("question_asked")
class QuestionAsked(Record):
    question_id: str
    question_kind: str
    path: str  # step or effect it is about; '' for the run
    sentence: str
    choices: tuple[Choice, ...]
    evidence: Pointer | None = None
    about: Data = field(default_factory=dict)  # the facts an answer acts on

    def chain(self) -> str:
        return ""


@kind("answer_entered")
class AnswerEntered(Record):
    """The holder acts on an answer, of several to one question on each: what came with it, by which door, as whom."""

    question_id: str
    choice: str
    by: str
    answered_at: str
    note: str = ""
    ref: str | None = None
    result: Pointer | None = None
    request: Pointer | None = None  # of an edited request the arguments, and the files among them, as JSON
    door: str = ""
    role: str = ""  # the entry of approvers= that let them answer
