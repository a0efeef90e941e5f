"""Whether people are shown the questions that the journal asks: a row of the inbox is a view and may be altered.

Looks at the words, not at seals: what stands in an altered journal is refused by the resume. Reads only. Called where
people look and before an answer is written.
"""

from __future__ import annotations

from collections.abc import Sequence

from milepost.errors import CorruptRecord
from milepost.records.model import QuestionAsked
from milepost.records.written import UNREADABLE, decode_record
from milepost.stores.contract import QuestionRow, Store


def check_shown(store: Store, row: QuestionRow) -> None:
    """Check that the journal asks what a question's row says. Raises: CorruptRecord."""
    if not (is_whole(row) and store.asks(row.run_id, row.body)):
        raise _refusal(row)


def altered(store: Store, rows: Sequence[QuestionRow]) -> dict[str, CorruptRecord]:
    """Return by question why its row cannot be believed, for those of which that is so."""
    asked = {run_id: _asked(store, run_id) for run_id in dict.fromkeys(row.run_id for row in rows)}
    return {row.question_id: _refusal(row) for row in rows if row.body not in asked[row.run_id] or not is_whole(row)}


def _asked(store: Store, run_id: str) -> set[bytes]:
    return {line.body for line in store.records(run_id, chain="") if line.kind == QuestionAsked.kind}


def is_whole(row: QuestionRow) -> bool:
    """Say whether what stands in the row's columns is what its body says."""
    try:
        q = decode_record(QuestionAsked.kind, row.body)
    except UNREADABLE:
        return False
    assert isinstance(q, QuestionAsked)
    shows = (row.question_id, row.kind, row.path, row.sentence, row.asked_at)
    return shows == (q.question_id, q.question_kind, q.path, q.sentence, q.at)


def _refusal(row: QuestionRow) -> CorruptRecord:
    reason = "the inbox shows another one than the journal asks"
    return CorruptRecord(run_id=row.run_id, record=f"question {row.question_id}", reason=reason)
