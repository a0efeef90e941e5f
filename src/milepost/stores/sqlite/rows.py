"""Rows as SQLite returns them, turned into the classes of the contract. Column order is that of `queries.sql`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from milepost.errors import CorruptRecord
from milepost.records.model import RunStatus
from milepost.records.rows import CancelRow
from milepost.records.seal import Place
from milepost.stores.contract import (
    Head,
    Held,
    Holder,
    Outline,
    Progress,
    QuestionRow,
    RunRow,
    StoredArtifact,
    StoredRecord,
)


def run_row(row: tuple[Any, ...]) -> RunRow:
    """Build a run from the columns of the statements `run` and `runs`."""
    run_id, task, family, seal_name, started_at, token, released, host, boot_id, pid, since, beat, beat_at, *rest = row
    status, status_at, verified_count, applied_count, next_action, detail, head_seq, head_seal, *rest = rest
    cancel_by, cancel_at, cancel_note, cancel_seal, shadow, cost, tokens = rest
    _check_times(run_id, started_at=started_at, status_at=status_at, beat_at=beat_at)
    counts = (verified_count, applied_count)
    return RunRow(
        run_id=run_id,
        task=task,
        family=family,
        seal_name=seal_name,
        started_at=started_at,
        progress=Progress(_status(run_id, status), status_at, *counts, next_action, detail, cost, tokens),
        head=Head(head_seq, head_seal),
        held=None if released else Held(run_id, token, Holder(host, boot_id, pid, since), beat, beat_at),
        cancel=None if cancel_at is None else CancelRow(run_id, cancel_by, cancel_at, cancel_note, cancel_seal),
        shadow=bool(shadow),
        taken_at=since,
    )


def _check_times(run_id: str, **times: Any) -> None:
    """Refuse a row whose times nobody can read. Raises: CorruptRecord."""
    for name, text in times.items():
        try:
            datetime.fromisoformat(text)
        except (ValueError, TypeError):
            reason = f"its {name} is {str(text)[:80]!r}, which is no time"
            raise CorruptRecord(run_id=run_id, record="its row in the list of runs", reason=reason) from None


def _status(run_id: str, name: str) -> RunStatus:
    try:
        return RunStatus(name)
    except ValueError:
        reason = f"its status is {name[:80]!r}, which no Milepost writes"
        raise CorruptRecord(run_id=run_id, record="its row in the list of runs", reason=reason) from None


record: Callable[[tuple[Any, ...]], StoredRecord] = partial(tuple.__new__, StoredRecord)
artifact: Callable[[tuple[Any, ...]], StoredArtifact] = partial(tuple.__new__, StoredArtifact)
_place: Callable[[tuple[Any, ...]], Place] = partial(tuple.__new__, Place)
"""All made by the ten thousand, so without a call of Python's."""


SMALL_BYTES = 4 * 1024
"""Bytes up to which an artifact comes with the outline: a page of the file, or a part of it."""
_SMALL_KEPT_BYTES = 16 * 1024 * 1024
"""Bytes of such artifacts that are kept: what a resume reads must not grow with the outputs."""


class OutlineRows:
    """Takes what the statement `outline` finds, page by page."""

    def __init__(self) -> None:
        self._small: dict[str, bytes] = {}
        self._room = _SMALL_KEPT_BYTES
        self.outline = Outline([], [], self._small)
        self.carried: dict[str, int] = {}  # digest -> seq of a record that carries it

    def take(self, page: list[tuple[Any, ...]]) -> None:
        """Take the next rows, at least one."""
        seqs, chains, seals, digests, kinds, bodies, small = zip(*page, strict=True)
        self.outline.places.extend(map(_place, zip(seqs, chains, seals, strict=True)))
        lines = zip(seqs, chains, kinds, bodies, seals, strict=True)
        self.outline.records.extend(map(record, [line for line in lines if not line[1]]))
        self.carried.update({name: seq for name, seq in zip(digests, seqs, strict=True) if name is not None})
        if self._room > 0:
            found = {name: data for name, data in zip(digests, small, strict=True) if data is not None}
            self._small.update(found)
            self._room -= sum(map(len, found.values()))


def question(row: tuple[Any, ...]) -> QuestionRow:
    question_id, run_id, kind, path, sentence, asked_at, body, closed = row
    return QuestionRow(question_id, run_id, kind, path, sentence, asked_at, body, bool(closed))
