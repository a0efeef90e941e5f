"""`fork RUN --from STEP`: a new run of the same family that keeps what was verified before STEP.

Nothing applied in a family is sent again: every effect's intents and outcomes come along, also later ones.
It is the way out of a corrupt journal, too: what can be trusted is kept, the rest is in doubt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from milepost.errors import BadName, LeaseLost, LeaseTaken, RefusedError, RunUnstarted, SealKeyMissing, StepUnknown
from milepost.protocol.fold import fold_record
from milepost.protocol.keys import checked_name
from milepost.protocol.ops import Artifact
from milepost.protocol.snapshot import Snapshot
from milepost.protocol.spec import EffectSpec
from milepost.records.frozen import slotted
from milepost.records.model import ENDED, Pointer, QuestionKind, Record, RunEnded, RunStarted, RunStatus
from milepost.records.rows import CancelRow, ClaimRow
from milepost.records.seal import Sealer, key_name
from milepost.records.times import format_time
from milepost.runtime.clock import Clock
from milepost.runtime.copies import copies_of
from milepost.runtime.family import Family, is_empty, newest_seen
from milepost.runtime.journal import Journal
from milepost.runtime.keeping import Artifacts
from milepost.runtime.leases import me, take
from milepost.runtime.opening import Opened, decoded, read_snapshot, row_of, went_back
from milepost.runtime.registry import spec_of
from milepost.runtime.trust import files_listed, pointers
from milepost.runtime.witness import Witness, witness_of
from milepost.stores.contract import LEASE_S, Lease, NewRun, Store

TAKEN = "a run of this id is there already, or was and its id stays taken"
ANOTHER = "Choose another id for the new run."


@slotted
class Trusted:
    """What can be trusted of a journal: all of it, or the part before the first bad record."""

    run_id: str
    before: Snapshot  # folded up to the first record of the step or effect
    whole: Snapshot  # folded up to the last trusted record
    in_doubt: bool

    def first(self, at: str, step_path: str) -> RunStarted:
        """Return the first record of a fork."""
        started = self.whole.started
        assert started is not None
        declined = {path: state.kept_by_a_fork(self.run_id) for path, state in self.whole.declined.items()}
        about: dict[str, Any] = {"forked_from": self.run_id, "forked_at": step_path, "declined": declined}
        return replace(started, at=at, in_doubt=self.in_doubt, **about)


def fork_run(
    store: Store,
    run_id: str,
    step_path: str,
    new_run_id: str,
    *,
    seal_key: bytes | None,
    clock: Clock,
    environ: Mapping[str, str],
    lease_s: float = LEASE_S,
) -> None:
    """End a run and begin another one before STEP, a step or an effect. Resume the new one to go on.

    Raises: RunBusy while the run is held, RunUnknown, StepUnknown, AlreadyForked, SealKeyMissing, LeaseTaken, BadName
    when the new id is taken.
    Crash: the old run may be forked again, into the same new one or another; or the new one is there whole.
    """
    new_run_id = checked_name("run id", new_run_id)
    family_name = row_of(store, run_id).family
    _check_free(store, new_run_id, family_name)
    lease = take(store, run_id, clock, lease_s)
    copies = copies_of(store, family_name, environ)
    try:
        opened = read_snapshot(store, run_id, seal_key, every_chain=True)
        copies.take(lease, store.location)
        witness = witness_of(store.store_id, run_id, environ)
        line = newest_seen(store.store_id, family_name, environ)
        family = Family(store, family_name, opened.sealer, clock, lease_s, line)
        is_behind = went_back(store, opened, witness) is not None or family.has_newer(run_id, _origin(opened))
        trusted = _trusted(store, opened, step_path, is_behind)
        at = format_time(clock.now())
        first = trusted.first(at, step_path)
        records = [first, *_kept(trusted), RunEnded(at=at, status=RunStatus.INTERRUPTED)]
        artifacts = _copied(Artifacts(store, run_id, snapshot=trusted.whole), records)
        family.stay_newest(lease)
        # A store that went back: what proves it is not overwritten, it may be forked again.
        _end(store, lease, opened, clock, None if is_behind else witness, new_run_id)
        new = NewRun(new_run_id, first.task, first.family, key_name(seal_key), at, me(clock), first.shadow)
        _begin(family, new, trusted, records, artifacts, seal_key, environ)
    except LeaseLost as error:
        raise LeaseTaken(run_id=run_id, token=lease.token) from error
    finally:
        store.release(lease)
        copies.drop()


def _origin(opened: Opened) -> str | None:
    """Return the run that this one is a fork of, as far as its journal can be trusted."""
    started = opened.snapshot.started
    return started.forked_from if started is not None else None


def _check_free(store: Store, new_run_id: str, family: str) -> None:
    """Check that a run may begin under an id: none is there, or one that a fork of this family left without records."""
    row = store.run(new_run_id)
    if row is not None and not (is_empty(row) and row.family == family):
        raise BadName(what="run id", name=new_run_id, reason=TAKEN, hint=ANOTHER)


def _trusted(store: Store, opened: Opened, step_path: str, is_behind: bool) -> Trusted:
    if isinstance(opened.refusal, SealKeyMissing):
        raise opened.refusal
    before, whole = Snapshot(), Snapshot()
    reached = False
    for record in _trusted_records(store, opened):
        reached = reached or getattr(record, "path", None) == step_path
        if not reached:
            fold_record(before, record)
        fold_record(whole, record)
    if whole.started is None and opened.refusal is None:
        raise RunUnstarted(run_id=opened.row.run_id, location=store.location)
    if whole.started is None or (not reached and opened.refusal is None):
        raise StepUnknown(run_id=opened.row.run_id, path=step_path)
    in_doubt = opened.refusal is not None or is_behind or whole.in_doubt or _was_asked_about_its_store(whole)
    return Trusted(opened.row.run_id, before, whole, in_doubt=in_doubt)


def _was_asked_about_its_store(s: Snapshot) -> bool:
    """Say whether a resume found that the store went back: the witness has seen newer heads since and shows nothing."""
    asked = (*s.questions.values(), *s.void.values(), *(question for question, _ in s.answered.values()))
    return any(question.question_kind == QuestionKind.STORE_WENT_BACK for question in asked)


def _trusted_records(store: Store, opened: Opened) -> Iterator[Record]:
    """Yield records in order up to the first that is missing, altered or unreadable."""
    chains: dict[str, bytes] = {}
    for number, line in enumerate(store.records(opened.row.run_id), 1):
        try:
            if line.seq != number:
                return
            chains[line.chain] = opened.sealer.check(line, chains.get(line.chain))
            yield decoded(opened.sealer, line)
        except RefusedError:
            return


def _end(store: Store, lease: Lease, opened: Opened, clock: Clock, witness: Witness | None, new_run_id: str) -> None:
    """Stop the old run; ask one that cannot be written to end, for it must not go on either once it is mended.

    Crash: stopped or asked to end, or not.
    """
    now = format_time(clock.now())
    if opened.refusal is not None:
        asked = CancelRow(lease.run_id, "fork", now, f"{new_run_id} goes on in its place")
        store.cancel(opened.sealer.sealed(asked))
    elif opened.snapshot.status not in ENDED:
        journal = Journal(store, lease, opened, witness=witness)
        journal.append((RunEnded(at=now, status=RunStatus.STOPPED),))
        journal.flush()
        journal.close()


def _begin(
    family: Family,
    new: NewRun,
    trusted: Trusted,
    records: Sequence[Record],
    artifacts: Sequence[Artifact],
    seal_key: bytes | None,
    environ: Mapping[str, str],
) -> None:
    """Write the new run in one commit. Crash: a run without records, which can be forked into again; or all of it."""
    store, old = family.store, trusted.run_id
    lease = _made(family, new)
    try:
        family.follow(lease, old)
        sealer = Sealer(new.run_id, seal_key)
        empty = Opened(row_of(store, new.run_id), sealer)
        journal = Journal(store, lease, empty, witness=witness_of(store.store_id, new.run_id, environ))
        journal.append(records, artifacts)
        journal.flush()
        journal.close()
        family.seen(new.run_id)
        _take_claims(store, old, lease, sealer, trusted, new.at)
    finally:
        store.release(lease)


def _made(family: Family, new: NewRun) -> Lease:
    """Create the new run, or take the one that a fork left without records. Raises: BadName, RunBusy.

    Crash: as it was, or a run without records.
    """
    lease = family.store.create_run(new)
    if lease is None and family.store.run(new.run_id) is not None:
        lease = take(family.store, new.run_id, family.clock, family.lease_s)
        try:
            _check_free(family.store, new.run_id, new.family)
        except BadName:
            family.store.release(lease)
            raise
    if lease is None:
        raise BadName(what="run id", name=new.run_id, reason=TAKEN, hint=ANOTHER)
    return lease


def _kept(trusted: Trusted) -> Iterator[Record]:
    """Yield effects first (all of them), then the checkpoints before the step, each in its old order."""
    for state in trusted.whole.effects.values():
        for send in state.sends:
            yield send.intent
            if send.outcome is not None:
                yield send.outcome
        if state.applied is not None and not any(send.outcome is state.applied for send in state.sends):
            yield state.applied
        if state.shadowed is not None:
            yield state.shadowed
    verified = [s for s in trusted.before.steps.values() if s.verified is not None and trusted.before.counts(s.path)]
    for step in sorted(verified, key=attrgetter("verified_order")):
        assert step.verified is not None
        yield replace(step.verified, inner_head=None, inner_count=None)


def _copied(old: Artifacts, records: Iterable[Record]) -> list[Artifact]:
    """Load everything the records point at, and the files their manifests list, for the new run."""
    found: dict[str, Artifact] = {}
    for what, pointer in pointers(records):
        _copy(old, what, pointer, found)
        data = found[pointer.digest].data
        for name, file in files_listed(what, data) if data is not None else ():
            _copy(old, name, file, found)
    return list(found.values())


def _copy(old: Artifacts, what: str, pointer: Pointer, found: dict[str, Artifact]) -> None:
    if pointer.digest not in found:
        data = old.load(pointer, what)
        found[pointer.digest] = Artifact(pointer, data if pointer.where == "row" else None)


def _take_claims(store: Store, run_id: str, lease: Lease, sealer: Sealer, trusted: Trusted, at: str) -> None:
    """Take over the open keys of scope="task" that the old run owned. Crash: taken over by the next resume's ask."""
    for state, send in trusted.whole.open_intents():
        spec = spec_of(state.path, send.intent.versions)
        if isinstance(spec, EffectSpec) and spec.scope == "task":
            row = ClaimRow(send.intent.key, lease.run_id, state.path, send.intent.request_digest, at)
            store.claim(sealer.sealed(row), lease.token, instead_of=run_id)
