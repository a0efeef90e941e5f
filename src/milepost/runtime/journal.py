"""The journal of one run under one lease: seals what is appended, keeps its order, folds it.

The only writer of a run. An append that failed ends it: nothing is written from memory afterwards.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from milepost.errors import CorruptRecord, RecordTooLarge
from milepost.protocol.fold import fold_record
from milepost.protocol.ops import Artifact
from milepost.protocol.snapshot import Snapshot
from milepost.records.frozen import frozen
from milepost.records.model import (
    RECORD_SIZE_MAX,
    AnswerEntered,
    IntentRecorded,
    Outcome,
    OutcomeRecorded,
    QuestionAsked,
    Record,
    RunEnded,
    RunStatus,
    StepStarted,
    StepVerified,
)
from milepost.records.rows import ClaimRow
from milepost.records.written import encode_record
from milepost.runtime.keeping import Artifacts
from milepost.runtime.opening import Opened, decoded, fold
from milepost.runtime.proof import JournalProof
from milepost.runtime.witness import Witness
from milepost.stores.contract import (
    TOKENS_MAX,
    Batch,
    Head,
    Lease,
    Progress,
    QuestionRow,
    Store,
    StoredArtifact,
    StoredRecord,
    Ticket,
)

READ_BACK_MAX = 500
"""Records of a page that is read back when a run is done: the memory it takes does not grow with the journal."""


@frozen
class Entry:
    """One append: its ticket tells when everything up to `head` is durable."""

    ticket: Ticket
    head: Head


class Journal:
    """Appends, folds and loads. The head and the chains' last seals go on from what was read."""

    def __init__(
        self,
        store: Store,
        lease: Lease,
        opened: Opened,
        *,
        witness: Witness | None = None,
        watch: Callable[[Record], None] | None = None,
    ) -> None:
        self.store, self.lease, self.sealer, self.snapshot = store, lease, opened.sealer, opened.snapshot
        self._head, self._chains, self._counts = opened.head, opened.chains, opened.counts
        self._witness, self._watch = witness, watch
        self._unseen: deque[tuple[int, Record]] = deque()
        self._lock = threading.Lock()
        self._showing = threading.RLock()
        self._durable_seq = opened.head.seq
        self._newest: Entry | None = None
        self.artifacts = Artifacts(
            store, lease.run_id, snapshot=opened.snapshot, flush=self.flush, checked=opened.checked
        )

    def append(
        self, records: Sequence[Record], artifacts: Sequence[Artifact] = (), claims: Sequence[ClaimRow] = ()
    ) -> Entry:
        """Seal and append records in order; the entry's ticket tells when they are durable.

        With the last record of a run that is done its lease is given back: nobody goes on with it, so nothing that
        still runs here could be sent or written twice.
        Crash: none of them, or all; never one without those before it.
        """
        last = records[-1]
        is_done = isinstance(last, RunEnded) and last.status == RunStatus.DONE
        with self._lock:
            stored = [self._seal(record) for record in records]
            batch = Batch(
                self.lease.run_id,
                self.lease.token,
                stored,
                self._head,
                progress_of(self.snapshot, last),
                [StoredArtifact(*a.pointer[:3], a.data) for a in artifacts] if artifacts else (),
                self._questions(records),
                [self.sealer.sealed(claim) for claim in claims] if claims else (),
                is_done,
            )
            if self._watch is not None:
                self._unseen.extend(zip((line.seq for line in stored), records, strict=True))
            entry = self._newest = Entry(self.store.append(batch), self._head)
            return entry

    def durable(self, entry: Entry) -> None:
        """Hear that an entry is durable: remember it outside the store, show it to whoever watches.

        Never more than that: others append meanwhile, and an older entry may be heard of later.
        Crash: the witness is behind the store, which is honest.
        """
        head = entry.head
        with self._showing:
            if head.seq <= self._durable_seq:
                return
            self._durable_seq = head.seq
            if self._witness is not None:
                self._witness.write(head.seq, head.seal)
            if self._watch is not None:
                self._show(head.seq, self._watch)

    def _show(self, seq: int, watch: Callable[[Record], None]) -> None:
        while self._unseen and self._unseen[0][0] <= seq:
            watch(self._unseen.popleft()[1])

    def flush(self) -> None:
        """Wait until everything appended is durable."""
        newest = self._newest
        if newest is not None:
            newest.ticket.wait()
            self.durable(newest)

    def index_unread(self, is_unread: Callable[[str], bool]) -> None:
        """Learn which effects stand applied inside verified steps, whose chains a resume does not read.

        Only names and keys are taken: what they lead to is a question, never an answer.
        """
        intents: dict[str, IntentRecorded] = {}
        for line in self.store.records(self.lease.run_id):
            if line.kind not in (IntentRecorded.kind, OutcomeRecorded.kind) or not is_unread(line.chain):
                continue
            record = decoded(self.sealer, line)
            if isinstance(record, IntentRecorded):
                intents[record.path] = record
            elif isinstance(record, OutcomeRecorded) and record.outcome == Outcome.APPLIED and record.path in intents:
                self.snapshot.note_sent(intents[record.path])

    def check_written(self) -> None:
        """Check that the store has every record in its place, and the task's own as they were appended.

        What finished steps hold inside is `verify`'s business, as on a resume. A page of records at a time.
        Raises: CorruptRecord, StoreUnavailable.
        """
        row, head = self.store.run(self.lease.run_id), self._head
        if row is None:
            return  # done, and pruned since
        if not self._own_chain_is_all_and_stands():
            proof = JournalProof(row.run_id, self.sealer)
            for line in self._written():
                proof.pass_by(line, is_judged=not line.chain)
            proof.end(head)
        if row.head != head:
            reason = f"it says {row.head.seq} records, {head.seq} were appended"
            raise CorruptRecord(run_id=row.run_id, record="the head in the list of runs", reason=reason)

    def _own_chain_is_all_and_stands(self) -> bool:
        """Say whether the task's chain is the only one and ends as it was appended: its last seal covers all of it."""
        if self._counts[""] != self._head.seq:
            return False
        ends: dict[str, bytes] = {}
        try:
            for _ in self.sealer.checked(self._written(), ends):
                continue
        except CorruptRecord:
            return False  # the proof names it
        return ends.get("") == self._chains[""]

    def _written(self) -> Iterator[StoredRecord]:
        """Yield what the store holds of the run, read a page at a time."""
        page = self.store.records(self.lease.run_id, limit=READ_BACK_MAX)
        yield from page
        while len(page) == READ_BACK_MAX:
            page = self.store.records(self.lease.run_id, after=page[-1].seq, limit=READ_BACK_MAX)
            yield from page

    def close(self) -> None:
        if self._witness is not None:
            self._witness.close()

    def _seal(self, record: Record) -> StoredRecord:
        chain = record.chain()
        if isinstance(record, StepVerified) and record.path in self._chains:
            record = replace(
                record, inner_head=self._chains[record.path].hex(), inner_count=self._counts.get(record.path, 0)
            )
        body = encode_record(record)
        if isinstance(record, StepStarted) and len(body) > RECORD_SIZE_MAX:
            raise RecordTooLarge(what="the start", path=record.path[:200], size=len(body), size_max=RECORD_SIZE_MAX)
        last, head_seal = self._head
        seq = last + 1
        seal = self.sealer.seal(self._chains.get(chain), seq, chain, record.kind, body)
        self._head = Head(seq, self.sealer.head(head_seal, seq, chain, seal))
        self._chains[chain] = seal
        self._counts[chain] = self._counts.get(chain, 0) + 1
        fold_record(self.snapshot, record)
        return StoredRecord(seq, chain, record.kind, body, seal)

    def _questions(self, records: Sequence[Record]) -> Sequence[QuestionRow]:
        """Return the rows of questions that records ask, and of those they answer or leave without one."""
        if _ABOUT_QUESTIONS.isdisjoint(map(type, records)):
            return ()
        asked = [_question_row(self.lease.run_id, r) for r in records if isinstance(r, QuestionAsked)]
        answered = [self.snapshot.answered[r.question_id][0] for r in records if isinstance(r, AnswerEntered)]
        void = self.snapshot.void.values() if any(isinstance(r, RunEnded) for r in records) else ()
        return [*asked, *(_question_row(self.lease.run_id, q, closed=True) for q in (*answered, *void))]

    def load_chain(self, path: str) -> None:
        """Read, check and fold the chain of a body whose step was verified when the run was opened, if there is one.

        Raises: CorruptRecord.
        """
        with self._lock:
            if path in self._chains:
                return
            stored = self.store.records(self.lease.run_id, chain=path)
            if not stored:
                return
            ends: dict[str, bytes] = {}
            checked = list(self.sealer.checked(stored, ends))  # all of them, before one is folded
            self._chains[path], self._counts[path] = ends[path], len(checked)
            s = self.snapshot
            counted = s.verified_count, s.applied_count
            for line in checked:
                fold(self.sealer, s, line, decoded(self.sealer, line))
            s.verified_count, s.applied_count = counted  # they were counted when they were written


_ABOUT_QUESTIONS: frozenset[type[Record]] = frozenset((QuestionAsked, AnswerEntered, RunEnded))


def status_of(s: Snapshot) -> RunStatus:
    """Return the status the list of runs shows for what a journal says."""
    return RunStatus.ASKING if s.questions and s.status is RunStatus.RUNNING else s.status


def progress_of(s: Snapshot, last: Record) -> Progress:
    """Return what the list of runs shows for what a journal says up to its last record."""
    status = status_of(s)
    detail = _detail(last) if isinstance(last, RunEnded) else ""
    cost = str(s.used.cost) if s.used.cost else ""
    tokens = min(s.used.tokens, TOKENS_MAX)
    return Progress(status, last.at, s.verified_count, s.applied_count, s.next_action, detail[:300], cost, tokens)


def _detail(ended: RunEnded) -> str:
    """Say in the list of runs how a journey ended, or until when it waits."""
    if ended.until is not None:
        return f"until {ended.until}: {ended.reason}"
    where = f"{ended.path}: " if ended.path else ""
    return f"{where}{ended.error}" if ended.error else ""


def _question_row(run_id: str, asked: QuestionAsked, *, closed: bool = False) -> QuestionRow:
    return QuestionRow(
        asked.question_id,
        run_id,
        asked.question_kind,
        asked.path,
        asked.sentence,
        asked.at,
        encode_record(asked),
        closed,
    )
