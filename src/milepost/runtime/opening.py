"""Reading a journal: trust first, then fold. Inspecting takes the same way and needs no lease.

A resume checks the chains of the task and of unfinished steps; `verify` checks all (design §7, Seals).
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from decimal import Decimal, InvalidOperation
from operator import attrgetter

from milepost.errors import CorruptRecord, RefusedError, RunEnded, RunUnknown, SealKeyMissing
from milepost.protocol.fold import fold_record, fold_start_unread
from milepost.protocol.snapshot import Snapshot
from milepost.records.frozen import slotted
from milepost.records.model import QuestionAsked, Record, RunResumed, RunStatus, StepStarted, StepVerified
from milepost.records.naming import parts_of
from milepost.records.rows import AnswerRow
from milepost.records.seal import Place, Sealed, Sealer, key_name
from milepost.records.written import UNREADABLE, decode_record
from milepost.runtime.witness import Witness
from milepost.stores.contract import Head, NewRun, Progress, RunRow, Store, StoredRecord

_FEW = frozenset((RunResumed.kind, QuestionAsked.kind))
UNSET_KEY = "Unset MILEPOST_SEAL_KEY for this run: it was started without a key, and goes on without one."
PRUNED = (
    "Its journal is deleted. Choose another run id for a new run: this one stays taken, its keys may be known to "
    "providers."
)
_chain_of = attrgetter("chain")
READS_MAX = 5
"""Readings of a journal that somebody is writing, before what does not fit together is believed."""


@slotted
class Opened:
    """What was read: the row, the fold of the trusted part, where each chain ends, why it is refused if it is."""

    row: RunRow
    sealer: Sealer
    snapshot: Snapshot = field(default_factory=Snapshot)
    chains: dict[str, bytes] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)  # records of each chain, read or not
    records: list[tuple[StoredRecord, Record]] = field(default_factory=list)
    unread: list[StoredRecord] = field(default_factory=list)  # starts whose checkpoint says it all
    few: list[tuple[StoredRecord, Record]] = field(default_factory=list)  # of these: resumes and questions
    answers: dict[str, list[AnswerRow]] = field(default_factory=dict)  # that settle open questions
    small: Mapping[str, bytes] = field(default_factory=dict)  # artifacts that came along; not checked
    checked: dict[str, bytes] = field(default_factory=dict)  # artifacts read and checked already, so many bytes at most
    refusal: RefusedError | None = None

    @property
    def head(self) -> Head:
        return self.row.head


def row_of_new(new: NewRun) -> RunRow:
    """Return the row of a run that was created just now, as the store would."""
    progress, head = Progress(RunStatus.RUNNING, new.at), Head(0, b"")
    about = (new.run_id, new.task, new.family, new.seal_name, new.at)
    return RunRow(*about, progress, head, held=None, taken_at=new.holder.since)


def row_of(store: Store, run_id: str) -> RunRow:
    """Return a run's row. Raises: RunUnknown; RunEnded for one that was pruned."""
    row = store.run(run_id)
    if row is None and store.was_pruned(run_id):
        raise RunEnded(run_id=run_id, status="pruned", hint=PRUNED)
    if row is None:
        raise RunUnknown(run_id=run_id, location=store.location)
    return row


def read_snapshot(store: Store, run_id: str, seal_key: bytes | None, *, every_chain: bool = False) -> Opened:
    """Read what a resume needs of a run (or all of it). Raises: RunUnknown. A refusal is returned, not raised."""
    with collecting_later():
        opened = _read_once(store, run_id, seal_key, every_chain)
        for _ in range(READS_MAX):
            row = store.run(run_id)
            if opened.refusal is None or row is None or row.head == opened.head:
                break
            opened = _read_once(store, run_id, seal_key, every_chain)  # it grew between two queries
        return opened


@contextmanager
def collecting_later() -> Iterator[None]:
    """Keep the garbage collector from walking a journal that grows by thousands of records, again and again.

    What was read lives as long as its run. So it counts as old at once, as far as nobody else has frozen objects.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _read_once(store: Store, run_id: str, seal_key: bytes | None, every_chain: bool) -> Opened:
    row = row_of(store, run_id)
    opened = Opened(row, Sealer(run_id, seal_key))
    try:
        check_key(row, seal_key)
        places, of_task, opened.small = store.outline(run_id)
        _check_places(opened, places)
        _read(opened, store.records(run_id) if every_chain else of_task, every_start=every_chain)
        if not every_chain:
            _read_unfinished(store, opened)
            _count_unread(opened)
    except RefusedError as refusal:
        opened.refusal = refusal
    return opened


def check_key(row: RunRow, seal_key: bytes | None) -> None:
    """Check that this is the key a run is sealed with. Raises: SealKeyMissing."""
    if key_name(seal_key) != row.seal_name:
        found = f"the key given is {key_name(seal_key)}" if seal_key is not None else "no key is given"
        if row.seal_name is None:
            reason = "a key is given, and the run was started without one"
            raise SealKeyMissing(run_id=row.run_id, key_name="none", found=reason, hint=UNSET_KEY)
        raise SealKeyMissing(run_id=row.run_id, key_name=row.seal_name, found=found)


def _check_places(opened: Opened, places: Sequence[Place]) -> None:
    """Check that every record is there, in its place and chain, also of chains that are not read."""
    head = opened.row.head
    if places or head.seq:
        opened.sealer.check_head(head.seq, head.seal, places)
    opened.counts = Counter(map(_chain_of, places))


def _read(opened: Opened, lines: Iterable[StoredRecord], *, every_start: bool) -> None:
    """Check, read and fold records; the seal of a start that its checkpoint follows is checked, and that is enough."""
    start: StoredRecord | None = None
    for line in opened.sealer.checked(lines, opened.chains):
        if start is not None:
            ends, start = start, None
            if _finishes(opened, ends, line):
                continue
        if line.kind == StepStarted.kind and not every_start:
            start = line
        else:
            _take(opened, line)
    if start is not None:
        _take(opened, start)


def _take(opened: Opened, line: StoredRecord) -> None:
    record = decoded(opened.sealer, line)
    opened.records.append((line, record))
    if line.kind in _FEW:
        opened.few.append((line, record))
    fold(opened.sealer, opened.snapshot, line, record)


def _finishes(opened: Opened, start: StoredRecord, line: StoredRecord) -> bool:
    """Take a step's first start and the checkpoint right behind it together; else take the start alone.

    The checkpoint says again what the start says. What only the start has, its inputs, is asked for when they differ.
    """
    record = decoded(opened.sealer, line) if line.kind == StepVerified.kind else None
    s = opened.snapshot
    if (
        not isinstance(record, StepVerified)
        or start.chain != line.chain
        or not fold_start_unread(s, start.body, record.path, record.inputs_fingerprint)
    ):
        _take(opened, start)
        return False
    opened.unread.append(start)
    opened.records.append((line, record))
    fold(opened.sealer, s, line, record)
    return True


def fold(sealer: Sealer, snapshot: Snapshot, line: StoredRecord, record: Record) -> None:
    """Fold a record in. Raises: CorruptRecord when it refers to what is not there."""
    try:
        fold_record(snapshot, record)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise sealer.corrupt(line, f"it refers to what is not there: {error}") from error


def decoded(sealer: Sealer, line: StoredRecord) -> Record:
    """Read a record whose seal holds. Raises: CorruptRecord when it is none, or belongs to another chain."""
    try:
        record = decode_record(line.kind, line.body)
        chain = record.chain()
    except UNREADABLE as error:
        raise sealer.corrupt(line, f"it cannot be read: {type(error).__name__}: {error}") from error
    if chain != line.chain:
        raise sealer.corrupt(line, f"it names the chain {chain!r}")
    return record


def _read_unfinished(store: Store, opened: Opened) -> None:
    """Read the chains that are not inside a verified step, outer ones first, and fold everything in order again."""
    inner = sorted(opened.counts.keys() - {""}, key=lambda chain: len(parts_of(chain)))
    found = False
    for chain in inner:
        if opened.snapshot.counts_in(chain):
            found = True
            _read(opened, store.records(opened.row.run_id, chain=chain), every_start=False)
    if found:
        opened.records += [(start, decoded(opened.sealer, start)) for start in opened.unread]
        opened.records.sort(key=lambda pair: pair[0].seq)
        opened.snapshot = Snapshot()
        for line, record in opened.records:
            fold(opened.sealer, opened.snapshot, line, record)


def _count_unread(opened: Opened) -> None:
    """Take over what the run's row counts: it includes what finished inside steps whose records are not read.

    What was spent there is for the list of runs; where a task limits it, it is counted from the records themselves.
    Raises: CorruptRecord.
    """
    counted, s = opened.row.progress, opened.snapshot
    s.verified_count, s.applied_count = counted.verified_count, counted.applied_count
    if opened.counts.keys() - opened.chains.keys():
        try:
            s.used.cost = max(s.used.cost, Decimal(counted.cost or 0))
        except InvalidOperation as error:
            reason = f"it says cost {counted.cost[:80]!r}, which is no number"
            raise CorruptRecord(
                run_id=opened.row.run_id, record="its row in the list of runs", reason=reason
            ) from error
        s.used.tokens = max(s.used.tokens, counted.tokens)


class InnerHeads:
    """Where each chain ends so far: an outer checkpoint must seal its inner chain exactly there."""

    def __init__(self) -> None:
        self._ends: dict[str, tuple[str, int]] = {}  # chain -> last seal, count

    def take(self, run_id: str, line: Sealed, record: Record) -> None:
        """Hear of the next record. Raises: CorruptRecord when it is a checkpoint that seals something else."""
        count = self._ends.get(line.chain, ("", 0))[1] + 1
        self._ends[line.chain] = (line.seal.hex(), count)
        if not isinstance(record, StepVerified):
            return
        sealed = (record.inner_head, record.inner_count) if record.inner_head else None
        if self._ends.get(record.path) != sealed:
            raise CorruptRecord(
                run_id=run_id,
                record=f"record {line.seq} (step_verified {record.path})",
                reason="the records inside the step are not those it sealed",
            )


def check_inner_heads(opened: Opened) -> None:
    """Check that each outer checkpoint seals its inner chain as it is. Needs every chain. Raises: CorruptRecord."""
    ends = InnerHeads()
    for line, record in opened.records:
        ends.take(opened.row.run_id, line, record)


def went_back(store: Store, opened: Opened, witness: Witness) -> tuple[int, int] | None:
    """Compare the store with what this machine saw of it: None when they agree, else (agrees up to, witnessed)."""
    seen = witness.read()
    if seen is None or opened.refusal is not None:
        return None
    seq, seal = seen
    head = opened.head
    if seq > head.seq:
        return head.seq, seq
    then = head.seal if seq == head.seq else opened.sealer.head_of(store.outline(opened.row.run_id).places[:seq])
    return None if then == seal else (seq - 1, seq)
