"""`verify RUN`: prove everything a run's journal claims, or name what cannot be proven. Reads only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from milepost.errors import CorruptRecord, MilepostError, RefusedError, UnavailableError
from milepost.protocol.questions import counted
from milepost.records.model import AnswerEntered
from milepost.runtime.journal import progress_of
from milepost.runtime.keeping import Artifacts
from milepost.runtime.opening import Opened, check_inner_heads, read_snapshot, went_back
from milepost.runtime.proof import check_entered
from milepost.runtime.trust import check_cancel, check_questions, check_row, files_listed, pointers
from milepost.runtime.witness import witness_of
from milepost.stores.contract import Progress, Store


@dataclass(frozen=True, slots=True)
class Verdict:
    """One thing that was checked: whether it holds and what was found."""

    what: str
    ok: bool
    found: str


def verify_run(store: Store, run_id: str, seal_key: bytes | None, environ: Mapping[str, str]) -> list[Verdict]:
    """Check every seal, head, artifact and row of a run. Raises: RunUnknown."""
    opened = read_snapshot(store, run_id, seal_key, every_chain=True)
    if opened.refusal is not None:
        return [Verdict("records", False, str(opened.refusal))]
    return [
        Verdict("records", True, f"{_read(opened)}{_keyed(opened)}"),
        _checked("inner chains", lambda: _inner(opened)),
        _artifacts(store, opened),
        _checked("list of runs", lambda: _row(opened)),
        _checked("questions", lambda: _questions(store, opened)),
        _witness(store, opened, environ),
    ]


def _read(opened: Opened) -> str:
    return f"{counted(len(opened.records), 'record')} in {counted(len(opened.chains), 'chain')}"


def _keyed(opened: Opened) -> str:
    return f", sealed with key {opened.row.seal_name}" if opened.row.seal_name else ", sealed without a key"


def _checked(what: str, check: Callable[[], str]) -> Verdict:
    try:
        return Verdict(what, True, check())
    except RefusedError as error:
        return Verdict(what, False, str(error))


def _inner(opened: Opened) -> str:
    check_inner_heads(opened)
    return f"{max(len(opened.chains) - 1, 0)} inner chains are those their checkpoints sealed"


def _artifacts(store: Store, opened: Opened) -> Verdict:
    artifacts = Artifacts(store, opened.row.run_id, snapshot=opened.snapshot)
    count, bad = 0, []
    for what, pointer in pointers(record for _, record in opened.records):
        try:
            data = artifacts.load(pointer, what)
            count += 1
            for name, inner in files_listed(what, data):
                artifacts.load(inner, name)
                count += 1
        except (MilepostError, ValueError, KeyError, TypeError) as error:
            bad.append(str(error))
    bad += _bad_copies(store, opened.row.run_id)
    if bad:
        return Verdict("artifacts", False, "; ".join(bad[:5]))
    return Verdict("artifacts", True, f"{count} artifacts are there with the recorded digests")


def _bad_copies(store: Store, run_id: str) -> list[str]:
    """Name copies with other bytes than recorded: a resume used a good one, yet somebody changed the store."""
    try:
        return [found.found for found in store.check() if not found.ok and found.run_id == run_id]
    except UnavailableError as error:
        return [str(error)]


def _row(opened: Opened) -> str:
    """The list of runs is a view; a status the journal does not bear out is named."""
    shown, s = opened.row.progress, opened.snapshot
    if s.started is not None:
        check_row(opened)
    check_cancel(opened)
    sealed = progress_of(s, opened.records[-1][1]) if opened.records else shown
    odd = next((name for name in Progress._fields if getattr(shown, name) != getattr(sealed, name)), None)
    if odd is not None:
        said = f"it says {odd} {getattr(shown, odd)!r}, the journal says {getattr(sealed, odd)!r}"
        raise CorruptRecord(run_id=opened.row.run_id, record="its row in the list of runs", reason=said)
    return f"its row says {shown.status}, as the journal does"


def _questions(store: Store, opened: Opened) -> str:
    listed = {row.question_id for row in store.questions(opened.row.run_id, closed=True)}
    s = opened.snapshot
    sealed = {*s.questions, *s.answered, *s.void}
    if listed != sealed:
        odd = ", ".join(sorted(listed ^ sealed))
        raise CorruptRecord(
            run_id=opened.row.run_id, record="the inbox", reason=f"it differs from the journal in {odd}"
        )
    check_questions(store, opened)
    given = store.answers(opened.row.run_id)
    for row in given:
        opened.sealer.check_row(row)
    check_entered(opened.row.run_id, (r for _, r in opened.records if isinstance(r, AnswerEntered)), given)
    return f"{counted(len(sealed), 'question')}, as in the journal"


def _witness(store: Store, opened: Opened, environ: Mapping[str, str]) -> Verdict:
    witness = witness_of(store.store_id, opened.row.run_id, environ)
    seen = witness.read()
    if seen is None:
        return Verdict("witness", True, "this machine has no witness of the run")
    behind = went_back(store, opened, witness)
    if behind is None:
        return Verdict("witness", True, f"the store agrees with what this machine saw (record {seen[0]})")
    return Verdict(
        "witness", False, f"the store went back: it agrees up to record {behind[0]} of {behind[1]} seen here"
    )
