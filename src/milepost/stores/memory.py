"""MemoryStore: the store contract in a dictionary, for unit tests and programs that keep nothing.

A batch becomes durable when its ticket is waited for or asked after, or at a flush; `crash()` returns a
store that holds only what was durable. Leases know no processes: nobody is provably dead, only `still` or
a crash frees a run. Reads no clock, has no thread.
"""

from __future__ import annotations

import secrets
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path

from milepost.errors import LeaseLost, QuestionUnknown, StoreUnavailable
from milepost.records.model import ENDED, QuestionAsked, RunStatus
from milepost.records.rows import AnswerRow, CancelRow, ClaimRow
from milepost.records.seal import Place
from milepost.stores.contract import (
    Batch,
    Diagnosis,
    Head,
    Held,
    Holder,
    Lease,
    NewRun,
    Outline,
    Progress,
    QuestionRow,
    RunRow,
    StoredArtifact,
    StoredRecord,
    Ticket,
)


@dataclass
class _Run:
    """Everything durable of one run."""

    row: RunRow
    token: int = 1
    records: list[StoredRecord] = field(default_factory=list)
    artifacts: dict[str, StoredArtifact] = field(default_factory=dict)

    def copy(self) -> _Run:
        return _Run(replace(self.row, held=None), self.token, list(self.records), dict(self.artifacts))


class MemoryTicket:
    """The promise of one append to a MemoryStore."""

    def __init__(self, store: MemoryStore, batch: Batch) -> None:
        self._store = store
        self.batch = batch
        self.error: BaseException | None = None

    def wait(self) -> None:
        """Make everything appended up to here durable. Raises: LeaseLost, StoreUnavailable."""
        self._store.flush()
        if self.error is not None:
            raise self.error

    def add_done_callback(self, callback: Callable[[BaseException | None], None]) -> None:
        """Make it durable and call back at once."""
        self._store.flush()
        callback(self.error)


class MemoryStore:
    """A store for the life of the object. Thread-safe."""

    folder: Path | None = None

    def __init__(self, store_id: str | None = None) -> None:
        self.store_id = store_id or f"memory-{secrets.token_hex(8)}"  # the next one is another store to its witness
        self.location = "memory"
        self._lock = threading.RLock()
        self._closed = False
        self._runs: dict[str, _Run] = {}
        self._queue: deque[MemoryTicket] = deque()
        self._bad: dict[tuple[str, int], str] = {}
        self._questions: dict[str, QuestionRow] = {}
        self._answers: list[AnswerRow] = []
        self._claims: dict[str, ClaimRow] = {}
        self._pruned: set[str] = set()

    def crash(self) -> MemoryStore:
        """Return a store as a dead process would have left it: what was durable, nobody holding anything."""
        with self._lock:
            left = MemoryStore(self.store_id)
            left._runs = {run_id: run.copy() for run_id, run in self._runs.items()}
            left._questions, left._claims = copy(self._questions), copy(self._claims)
            left._answers, left._pruned = copy(self._answers), copy(self._pruned)
            return left

    def flush(self) -> None:
        """Make everything appended so far durable."""
        with self._lock:
            while self._queue:
                ticket = self._queue[0]
                ticket.error = self._write(ticket.batch)
                del self._queue[0]  # not before: interrupted, it would pass for written

    # ── runs and leases ──

    def create_run(self, run: NewRun) -> Lease | None:
        with self._lock:
            if run.run_id in self._runs or run.run_id in self._pruned:
                return None
            progress = Progress(RunStatus.RUNNING, run.at)
            held = Held(run.run_id, 1, run.holder, 0, run.at)
            about = (run.run_id, run.task, run.family, run.seal_name, run.at)
            row = RunRow(*about, progress, Head(0, b""), held, shadow=run.shadow, taken_at=run.holder.since)
            self._runs[run.run_id] = _Run(row)
            return Lease(run.run_id, 1, run.holder)

    def run(self, run_id: str) -> RunRow | None:
        with self._lock:
            found = self._runs.get(run_id)
            return found.row if found else None

    def was_pruned(self, run_id: str) -> bool:
        return run_id in self._pruned

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
        with self._lock:
            rows = sorted((run.row for run in self._runs.values()), key=lambda row: row.started_at)[::-1]
        if before is not None:
            places = [place for place, row in enumerate(rows) if row.run_id == before]
            rows = rows[places[0] + 1 :] if places else []
        found = [r for r in rows if task in (None, r.task) and family in (None, r.family)]
        found = [r for r in found if status in (None, r.progress.status)]
        return [r for r in found if search is None or search.lower() in _searched(r)][:limit]

    def acquire(self, run_id: str, holder: Holder, *, still: Held | None = None) -> Lease | Held | None:
        with self._lock:
            run = self._runs.get(run_id)
            if run is None:
                return None
            held = run.row.held
            if held and not (still and (still.token, still.beat) == (held.token, held.beat)):
                return held
            run.token += 1
            held = Held(run_id, run.token, holder, 0, holder.since)
            run.row = replace(run.row, held=held, taken_at=holder.since)
            return Lease(run_id, run.token, holder)

    def renew(self, lease: Lease, at: str) -> bool:
        with self._lock:
            run = self._runs.get(lease.run_id)
            if run is None or run.token != lease.token:
                return False
            if run.row.held:
                run.row = replace(run.row, held=replace(run.row.held, beat=run.row.held.beat + 1, beat_at=at))
            return True

    def release(self, lease: Lease) -> None:
        with self._lock:
            self.flush()
            run = self._runs.get(lease.run_id)
            if run is not None and run.token == lease.token:
                run.row = replace(run.row, held=None)

    # ── the journal ──

    def append(self, batch: Batch) -> Ticket:
        """Take a batch. Crash: it is gone unless it was waited for, asked after or flushed."""
        with self._lock:
            if self._closed:
                raise self._unavailable("the store is closed")
            ticket = MemoryTicket(self, batch)
            self._queue.append(ticket)
            return ticket

    def records(
        self, run_id: str, *, chain: str | None = None, after: int = 0, limit: int | None = None
    ) -> list[StoredRecord]:
        return [r for r in self._records(run_id) if r.seq > after and chain in (None, r.chain)][:limit]

    def outline(self, run_id: str) -> Outline:
        found = self._records(run_id)
        return Outline([Place(r.seq, r.chain, r.seal) for r in found], [r for r in found if r.chain == ""])

    def artifacts(self, run_id: str, digests: Sequence[str]) -> Mapping[str, StoredArtifact]:
        with self._lock:
            found = self._runs[run_id].artifacts if run_id in self._runs else {}
            return {digest: found[digest] for digest in digests if digest in found}

    def _records(self, run_id: str) -> list[StoredRecord]:
        with self._lock:
            return list(self._runs[run_id].records) if run_id in self._runs else []

    def _write(self, batch: Batch) -> BaseException | None:
        """Write one batch whole, or say why not. Interrupted, it is written again: the row that tells of it is last."""
        key = (batch.run_id, batch.token)
        run = self._runs.get(batch.run_id)
        if run is None or run.token != batch.token:
            return LeaseLost()
        before = run.row.head.seq
        if [r.seq for r in batch.records] != list(range(before + 1, batch.head.seq + 1)):
            self._bad.setdefault(key, f"run {batch.run_id}: its journal does not end at record {before}")
        if key in self._bad:
            return self._unavailable(self._bad[key])
        run.records[before:] = batch.records
        for artifact in batch.artifacts:
            run.artifacts.setdefault(artifact.digest, artifact)
        self._questions.update((question.question_id, question) for question in batch.questions)
        for claim in batch.claims:
            if self._claims[claim.key].run_id == claim.run_id:
                self._claims[claim.key] = claim
        held = None if batch.gives_back else run.row.held
        run.row = replace(run.row, head=batch.head, progress=batch.progress or run.row.progress, held=held)
        return None

    # ── people ──

    def questions(
        self, run_id: str | None = None, *, question_id: str | None = None, closed: bool = False
    ) -> list[QuestionRow]:
        with self._lock:
            found = list(self._questions.values())
        if question_id is not None:
            return [q for q in found if q.question_id == question_id]
        return [q for q in found if run_id in (None, q.run_id) and (closed or not q.closed)]

    def asks(self, run_id: str, body: bytes) -> bool:
        return any(line.body == body for line in self.records(run_id, chain="") if line.kind == QuestionAsked.kind)

    def answer(self, answer: AnswerRow) -> AnswerRow:
        """Record an answer; return it, or the one in its place. Raises: QuestionUnknown."""
        with self._lock:
            question = self._questions.get(answer.question_id)
            if question is None or question.run_id != answer.run_id:
                raise QuestionUnknown(question_id=answer.question_id, location=self.location)
            place = (answer.question_id, answer.place)
            taken = (a for a in self._answers if a.accepted and (a.question_id, a.place) == place)
            standing = next(taken, None)
            if standing is None:
                self._answers.append(answer)
            return standing or answer

    def answers(self, run_id: str, question_id: str | None = None) -> list[AnswerRow]:
        with self._lock:
            found = [answer for answer in self._answers if answer.run_id == run_id]
        return [answer for answer in found if question_id in (None, answer.question_id)]

    def cancel(self, asked: CancelRow) -> None:
        with self._lock:
            run = self._runs.get(asked.run_id)
            if run is not None and run.row.cancel is None:
                run.row = replace(run.row, cancel=asked)

    def claim(self, claim: ClaimRow, token: int, *, instead_of: str | None = None) -> ClaimRow:
        """Own a key, or return its owner's row. Raises: LeaseLost."""
        with self._lock:
            run = self._runs.get(claim.run_id)
            if run is None or run.token != token:
                raise LeaseLost
            owner = self._claims.get(claim.key)
            if owner is None or owner.run_id == instead_of:
                self._claims[claim.key] = owner = claim
            return owner

    # ── the store itself ──

    def prune(self, run_ids: Sequence[str], at: str) -> int:
        with self._lock:
            ended = [r for r in run_ids if r in self._runs and self._runs[r].row.progress.status in ENDED]
            for run_id in ended:
                del self._runs[run_id]
                self._pruned.add(run_id)
            self._questions = {k: q for k, q in self._questions.items() if q.run_id not in ended}
            self._answers = [a for a in self._answers if a.run_id not in ended]
            return len(ended)

    def check(self) -> list[Diagnosis]:
        return [Diagnosis("memory", True, "nothing here outlives the process")]

    def close(self) -> None:
        """Make everything durable for `crash()` and take nothing more. Idempotent."""
        with self._lock:
            self.flush()
            self._closed = True

    def _unavailable(self, reason: str) -> StoreUnavailable:
        return StoreUnavailable(location=self.location, operation="append", reason=reason)


def _searched(row: RunRow) -> str:
    progress = row.progress
    return "\n".join((row.run_id, row.task, progress.next_action, progress.detail)).lower()
