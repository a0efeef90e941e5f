"""What every store promises: 18 methods, and the rows that pass through them.

Rules of a store (proved by `tests/contract`, the conformance suite every store passes):
1 a batch is written whole or not at all, and the batches of one run in the order they were appended;
2 nothing is written under a token that is not the run's newest (the fence is part of the INSERT);
3 what a ticket reported durable survives the process and the machine; 4 reading needs no lease and blocks
nobody; 5 a failed commit is *cannot tell*: the store never repeats it. A store knows no step and no retry.
What passes with every append is a NamedTuple: made a dozen times a step, in a third of a frozen dataclass's time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Protocol

from milepost.records.frozen import frozen
from milepost.records.model import RunStatus
from milepost.records.rows import AnswerRow, CancelRow, ClaimRow
from milepost.records.seal import Place

FLUSH_S = 0.05
"""Seconds after which an append nobody waits for is committed all the same (design §5.1)."""
LEASE_S = 30.0
"""Seconds a lease lasts without a sign of life; renewed every third of it."""


class StoredRecord(NamedTuple):
    """One line of a journal as stored. `seal` is 32 bytes over everything here and the one before in its chain."""

    seq: int  # 1, 2, … per run, without gaps
    chain: str  # path of the body it belongs to; '' for the task
    kind: str
    body: bytes
    seal: bytes


class Outline(NamedTuple):
    """The place of every record that is really there, and the records of the task's own chain, in order of seq.

    `small` holds artifacts that were met on the way, by digest and not checked: as many as the store sees fit.
    """

    places: list[Place]
    records: list[StoredRecord]
    small: Mapping[str, bytes] = MappingProxyType({})


class Head(NamedTuple):
    """The sealed end of a run's journal: number of its last record and a seal over it."""

    seq: int
    seal: bytes


class StoredArtifact(NamedTuple):
    """Bytes by digest. `data` is None when they are a file under the store's folder, durable already."""

    digest: str
    size: int
    media_type: str
    data: bytes | None


@frozen
class Holder:
    """Who works on a run: host name, the kernel's boot id, process id, when it took the run (UTC ISO)."""

    host: str
    boot_id: str
    pid: int
    since: str


@frozen
class Lease:
    """The time-limited right to work on a run. `token` grows with each lease and fences every write."""

    run_id: str
    token: int
    holder: Holder


@frozen
class Held:
    """Somebody else's lease: `beat` counts its renewals, `beat_at` is the wall time of the last (UTC ISO)."""

    run_id: str
    token: int
    holder: Holder
    beat: int
    beat_at: str


TOKENS_MAX = 2**63 - 1
"""Largest number of tokens that a run's row holds."""


class Progress(NamedTuple):
    """What the list of runs shows without reading journals."""

    status: RunStatus
    at: str
    verified_count: int = 0
    applied_count: int = 0
    next_action: str = ""
    detail: str = ""  # what it waits for, or how it ended
    cost: str = ""  # a decimal; "" for none that was said
    tokens: int = 0


@frozen
class QuestionRow:
    """An open question as the inbox lists it; the journal's `question_asked` is the truth."""

    question_id: str
    run_id: str
    kind: str
    path: str
    sentence: str
    asked_at: str
    body: bytes  # the record's stored bytes
    closed: bool = False  # answered and entered in the journal, or void


class Batch(NamedTuple):
    """What becomes durable together. `questions` and `claims` update rows by their id, `progress` the run's row."""

    run_id: str
    token: int
    records: Sequence[StoredRecord]
    head: Head
    progress: Progress | None = None
    artifacts: Sequence[StoredArtifact] = ()
    questions: Sequence[QuestionRow] = ()
    claims: Sequence[ClaimRow] = ()  # keys this run owns, as their rows stand from now on
    gives_back: bool = False  # the lease, as `release` does: the run is done


@frozen
class NewRun:
    run_id: str
    task: str
    family: str
    seal_name: str | None  # short name of the seal key, None when seals are plain digests
    at: str
    holder: Holder
    shadow: bool = False


@frozen
class RunRow:
    run_id: str
    task: str
    family: str
    seal_name: str | None
    started_at: str
    progress: Progress
    head: Head
    held: Held | None  # the newest lease not released; its holder may be dead
    cancel: CancelRow | None = None
    shadow: bool = False
    taken_at: str = ""  # when its newest lease began (UTC ISO), given back or not


@frozen
class Diagnosis:
    """One line of `doctor`: what was checked, whether it holds, what was found, what to do."""

    check: str
    ok: bool
    found: str
    hint: str = ""
    run_id: str = ""  # the run it is about; none: the store


class Ticket(Protocol):
    """The promise of one append."""

    def wait(self) -> None:
        """Block until the batch is durable. Raises: LeaseLost (fenced), StoreUnavailable (failed or cannot tell)."""

    def add_done_callback(self, callback: Callable[[BaseException | None], None]) -> None:
        """Ask for a commit soon and call back once with None or the error, possibly at once or from another thread."""


class Store(Protocol):
    """Durable home of runs. Times are UTC ISO strings given by the caller; a store reads no clock."""

    store_id: str
    location: str  # for messages
    folder: Path | None  # where large artifacts live; None keeps everything in the store

    def create_run(self, run: NewRun) -> Lease | None:
        """Create a run with token 1, held by `run.holder`; None when the id is taken, also by a pruned run.

        Crash: no run, or one without records.
        """

    def run(self, run_id: str) -> RunRow | None:
        """Return the run's row, None when there is none."""

    def was_pruned(self, run_id: str) -> bool:
        """Say whether a run of this id was here and was pruned."""

    def runs(
        self,
        *,
        task: str | None = None,
        status: RunStatus | None = None,
        family: str | None = None,
        search: str | None = None,
        limit: int = 100,
        before: str | None = None,
    ) -> list[RunRow]:
        """Return runs, newest start first; `before` is a run id to page on from.

        `search` is a text that id, task, next action or detail hold, whatever its case (of ASCII letters at least).
        """

    def acquire(self, run_id: str, holder: Holder, *, still: Held | None = None) -> Lease | Held | None:
        """Take the run with the next token, or say who holds it; None when there is no such run.

        Granted when nobody holds it, when the holder is provably dead on this machine, or when `still` equals
        the holder as it stands (token and beat): the caller watched it stand still for the lease's length.
        """

    def renew(self, lease: Lease, at: str) -> bool:
        """Count one sign of life. False when a later token exists."""

    def release(self, lease: Lease) -> None:
        """Give the run back. Harmless when the lease is lost, or was given back with a batch, already."""

    def append(self, batch: Batch) -> Ticket:
        """Take a batch for the next commit. It is committed within FLUSH_S even if nobody waits.

        Crash: none of the batch, or all of it; earlier batches of the run are there if this one is.
        """

    def records(
        self, run_id: str, *, chain: str | None = None, after: int = 0, limit: int | None = None
    ) -> list[StoredRecord]:
        """Return records with seq > after in order of seq: of one chain, or of all (None), so many at most."""

    def outline(self, run_id: str) -> Outline:
        """Return what a resume reads first, as of one moment: of most runs that is all of the journal it reads."""

    def artifacts(self, run_id: str, digests: Sequence[str]) -> Mapping[str, StoredArtifact]:
        """Return those of the run's artifacts that are there, in one query. Bytes are not checked here."""

    def questions(
        self, run_id: str | None = None, *, question_id: str | None = None, closed: bool = False
    ) -> list[QuestionRow]:
        """Return open questions (with closed=True all), oldest first, of one run or of all.

        With `question_id` that one only, open or not, without reading the others.
        """

    def asks(self, run_id: str, body: bytes) -> bool:
        """Say whether a record of the task's own chain is a question of exactly this content."""

    def answer(self, answer: AnswerRow) -> AnswerRow:
        """Record an answer without a lease; return it. If another one has its place, return that and record nothing.

        One with place 0 has no place to lose: it is kept for the audit. Crash: as if not given, or given.
        """

    def answers(self, run_id: str, question_id: str | None = None) -> list[AnswerRow]:
        """Return all answers of a run, or to one of its questions, accepted ones and later ones, oldest first."""

    def cancel(self, asked: CancelRow) -> None:
        """Ask a run to end, without a lease. The first request stands. Crash: asked or not asked."""

    def claim(self, claim: ClaimRow, token: int, *, instead_of: str | None = None) -> ClaimRow:
        """Own a key, or return the row of the run that does. `instead_of` takes it over from that run id.

        Crash: claimed without an intent, which the owner finds and goes on from. Raises: LeaseLost.
        """

    def prune(self, run_ids: Sequence[str], at: str) -> int:
        """Delete whole ended runs; keep key claims and one audit row each. Returns how many.

        Crash: each whole or gone.
        """

    def check(self) -> list[Diagnosis]:
        """Examine the store for `doctor`: settings, integrity, schema, orphans. Changes nothing."""

    def close(self) -> None:
        """Commit what is appended and let go. Idempotent."""
