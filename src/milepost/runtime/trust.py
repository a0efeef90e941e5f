"""Rule 1 of a resume, beyond the seals: what a run rests on outside its journal is what the journal says.

Artifacts that count, the run's row, the fencing token, the questions people were shown. Reads only; refuses by name.
The door calls it under the lease, before anything runs; `--check` calls it without one; `verify` looks at the rest too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any

from milepost.artifacts.files import ArtifactDamaged, ArtifactFiles, ArtifactMissing
from milepost.errors import CorruptRecord, RefusedError
from milepost.protocol.snapshot import Snapshot
from milepost.protocol.state import EffectState, settled_after
from milepost.records.canonical import parse
from milepost.records.identity import is_same_person
from milepost.records.model import KINDS, Pointer, QuestionAsked, Record, RunResumed
from milepost.records.rows import AnswerRow
from milepost.runtime.journal import status_of
from milepost.runtime.keeping import intact
from milepost.runtime.opening import Opened, collecting_later, read_snapshot
from milepost.runtime.shown import is_whole
from milepost.stores.contract import Lease, Store, StoredArtifact

CHECKED_KEPT_BYTES = 16 * 1024 * 1024
"""Bytes of checked artifacts kept for the plan, which asks for them next; the rest is read again."""
ROWS_AT_ONCE = 256
"""Artifact rows read in one query; each takes at most 64 KiB."""
_FILES = "files of "
"""Begins the name of a manifest of files."""


def read_trusted(store: Store, run_id: str, seal_key: bytes | None) -> Opened:
    """Read what a resume needs and check what it rests on. Raises: RunUnknown. A refusal is returned, not raised."""
    with collecting_later():
        opened = read_snapshot(store, run_id, seal_key)
        if opened.refusal is None and opened.snapshot.started is not None:
            try:
                _check_all(store, opened)
            except RefusedError as refusal:
                opened.refusal = refusal
        return opened


def _check_all(store: Store, opened: Opened) -> None:
    check_row(opened)
    check_questions(store, opened)
    opened.answers = offered_answers(store, opened)
    check_cancel(opened)
    check_artifacts(store, opened)


def check_lease(opened: Opened, lease: Lease) -> None:
    """Check that the fencing token grew since the journal was last written. Raises: CorruptRecord."""
    newest = max((record.token for _, record in opened.few if isinstance(record, RunResumed)), default=1)
    if opened.records and lease.token <= newest:
        raise _corrupt(
            opened, "its row", f"the next fencing token is {lease.token}, the journal was written under {newest}"
        )


def check_row(opened: Opened) -> None:
    """Check what the run's row says that the journal seals, its status too. Raises: CorruptRecord."""
    row, started = opened.row, opened.snapshot.started
    assert started is not None
    for name, shown, sealed in (("task", row.task, started.task), ("family", row.family, started.family)):
        if shown != sealed:
            raise _corrupt(opened, "its row", f"it says {name} {shown!r}, the journal says {sealed!r}")
    if row.shadow != started.shadow:
        raise _corrupt(opened, "its row", "it and the journal do not agree whether this is a shadow run")
    shown, sealed = row.progress.status, status_of(opened.snapshot)
    if shown != sealed:
        raise _corrupt(opened, "its row in the list of runs", f"it says {shown}, the journal says {sealed}")


def check_questions(store: Store, opened: Opened) -> None:
    """Check that people were shown the questions the journal asks. Raises: CorruptRecord."""
    asked = [(line, record) for line, record in opened.few if isinstance(record, QuestionAsked)]
    if not asked:
        return
    shown = {row.question_id: row for row in store.questions(opened.row.run_id, closed=True)}
    for line, q in asked:
        row = shown.get(q.question_id)
        if row is None:
            raise _corrupt(opened, f"question {q.question_id}", "the inbox does not have it")
        if row.body != line.body or not is_whole(row):
            raise _corrupt(opened, f"question {q.question_id}", "the inbox shows another one than the journal asks")


def offered_answers(store: Store, opened: Opened) -> dict[str, list[AnswerRow]]:
    """Return the answers that settle open questions. Raises: CorruptRecord.

    With a seal key its giver must have had it. Without one, at least its question must offer it: any other answer was
    not given through our doors.
    """
    questions = opened.snapshot.questions
    given = store.answers(opened.row.run_id) if questions else []
    answers: dict[str, list[AnswerRow]] = {}
    for row in sorted(given, key=lambda row: row.place):
        if row.accepted and row.question_id in questions:
            before = answers.setdefault(row.question_id, [])
            _check_offered(opened, questions[row.question_id], row, before)
            before.append(row)
    settled = {name: settled_after(questions[name], [row.choice for row in rows]) for name, rows in answers.items()}
    return {name: rows[: settled[name]] for name, rows in answers.items() if settled[name]}


def _check_offered(opened: Opened, question: QuestionAsked, row: AnswerRow, before: Sequence[AnswerRow]) -> None:
    """Check that an answer was given with the run's key, is offered, and is of somebody else who may give it."""
    opened.sealer.check_row(row)
    offered = [choice.name for choice in question.choices]
    approvers = question.about.get("approvers", ())
    reason = ""
    if row.choice not in offered:
        reason = f"it chooses {row.choice[:80]!r}, the question offers {', '.join(offered)}"
    elif any(is_same_person(row.by, agent) for agent in question.about.get("agents", ())):
        reason = f"it is by {row.by[:80]!r}, who runs the task and cannot allow what it asks"
    elif approvers and row.role not in approvers:
        reason = f"it is by {row.by[:80]!r}, {', '.join(approvers)} may answer"
    elif any(is_same_person(row.by, earlier.by) for earlier in before):
        reason = f"it is by {row.by[:80]!r}, who had answered already"
    if reason:
        raise _corrupt(opened, f"the answer to {row.question_id}", reason)


def check_cancel(opened: Opened) -> None:
    """Check that a request to end the run was made by somebody who has its seal key. Raises: CorruptRecord."""
    if opened.row.cancel is not None:
        opened.sealer.check_row(opened.row.cancel)


# ── artifacts ───────────────────────────────────────────────────────────────────────────────────────


def check_artifacts(store: Store, opened: Opened) -> None:
    """Check that every artifact a resume may read is there with its digest. Raises: CorruptRecord, StoreUnavailable."""
    files = ArtifactFiles(store.folder) if store.folder is not None else None
    waiting = list({pointer: (what, pointer) for what, pointer in pointers(relied_on(opened.snapshot))}.values())
    room, begin = CHECKED_KEPT_BYTES, 0
    while begin < len(waiting):
        part = waiting[begin : begin + ROWS_AT_ONCE]
        begin += len(part)
        rest = [p.digest for _, p in part if p.where == "row" and p.digest not in opened.small]
        rows = store.artifacts(opened.row.run_id, rest) if rest else {}
        for what, pointer in part:
            try:
                data = _checked(opened.small.get(pointer.digest), rows, files, what, pointer)
            except (ArtifactMissing, ArtifactDamaged) as error:
                raise _corrupt(opened, f"the {what}", str(error)) from error
            if what.startswith(_FILES):
                waiting.extend(files_listed(what, data))
            room -= len(data)
            if room >= 0:
                opened.checked[pointer.digest] = data
    opened.small = {}


def _checked(
    small: bytes | None, rows: Mapping[str, StoredArtifact], files: ArtifactFiles | None, what: str, pointer: Pointer
) -> bytes:
    """Return the bytes of a row (`small`: it came along) or a manifest; nothing of other files, which may be large."""
    if pointer.where == "file" and files is not None:
        if what.startswith(_FILES):
            return files.read(pointer.digest)
        files.check(pointer.digest)
        return b""
    row = rows.get(pointer.digest)
    return intact(small if small is not None or row is None else row.data, pointer)


def relied_on(s: Snapshot) -> Iterator[Record]:
    """Yield the records whose artifacts a resume may read: those that still count."""
    if s.started is not None:
        yield s.started
    for step in s.steps.values():
        found = step.verified or step.kept
        if found is not None and s.counts(step.path):
            yield found
    for effect in s.effects.values():
        if s.counts(effect.path):
            yield from _of_effect(effect)
    for _, answer in s.answered.values():
        yield answer


def _of_effect(effect: EffectState) -> Iterator[Record]:
    yield from (send.intent for send in effect.sends)
    if effect.applied is not None:
        yield effect.applied
    if effect.shadowed is not None:
        yield effect.shadowed


def pointers(records: Iterable[Record]) -> Iterator[tuple[str, Pointer]]:
    """Yield what each record points at, with a name for it."""
    for record in records:
        for name in _pointing(record.kind):
            value = getattr(record, name)
            if value is not None:
                yield f"{name} of {getattr(record, 'path', '') or 'the run'}", value


@cache
def _pointing(kind: str) -> tuple[str, ...]:
    """Return the fields of a kind of record that hold pointers, if anything; a resume asks for each record."""
    return tuple(f.name for f in fields(KINDS[kind]) if f.type in ("Pointer", "Pointer | None"))


def files_listed(what: str, data: bytes) -> Iterator[tuple[str, Pointer]]:
    """Yield the files a manifest lists; nothing for an artifact that is no manifest of files."""
    if not what.startswith(_FILES):
        return
    entries: Any = parse(data)
    for entry in entries:
        for file in entry.get("files", [entry]):
            pointer = Pointer(file["digest"], file["size"], file["media_type"], file["where"])
            yield f"file {entry['path']}", pointer


def _corrupt(opened: Opened, record: str, reason: str) -> CorruptRecord:
    return CorruptRecord(run_id=opened.row.run_id, record=record, reason=reason)
