"""One pass over a journal, record by record: order, seals, chains, inner heads and the sealed head, in little memory.

It needs no store: the lines may come from a file that somebody sent. `verify` shares what it checks. Reads nothing
itself. Called by `verify` and by `audit`.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable

from milepost.errors import CorruptRecord
from milepost.records.canonical import digest
from milepost.records.model import AnswerEntered, Record
from milepost.records.rows import AnswerRow
from milepost.records.seal import Sealer
from milepost.runtime.opening import InnerHeads, decoded
from milepost.stores.contract import Head, StoredRecord


class JournalProof:
    """Takes the records of a whole journal in order, and its head at the end.

    `tells_seals` False: the run's key is missing, so seals are not judged; everything else is.
    """

    def __init__(self, run_id: str, sealer: Sealer, *, tells_seals: bool = True) -> None:
        self.run_id, self.seq = run_id, 0
        self._sealer, self._tells_seals = sealer, tells_seals
        self._last: dict[str, bytes] = {}
        self._head: bytes | None = None
        self._inner = InnerHeads()

    def take(self, line: StoredRecord) -> Record:
        """Check the next record and return it read. Raises: CorruptRecord naming what is wrong with it."""
        self.pass_by(line)
        record = decoded(self._sealer, line)
        self._inner.take(self.run_id, line, record)
        return record

    def pass_by(self, line: StoredRecord, *, is_judged: bool = True) -> None:
        """Check the place of the next record, and what it says by its seal; do not read it. Raises: CorruptRecord."""
        if line.seq != self.seq + 1:
            raise self._corrupt(f"record {self.seq + 1}", f"it is not there, record {line.seq} stands in its place")
        if self._tells_seals and is_judged:
            self._sealer.check(line, self._last.get(line.chain))
        self._last[line.chain] = line.seal
        self._head = self._sealer.head(self._head, line.seq, line.chain, line.seal)
        self.seq = line.seq

    def end(self, head: Head) -> None:
        """Check that the journal ends where its sealed head says. Raises: CorruptRecord."""
        if self.seq != head.seq:
            raise self._corrupt("the journal", f"its head counts {head.seq} records, {self.seq} are there")
        if self._tells_seals and not hmac.compare_digest(self._head or b"", head.seal):
            raise self._corrupt("the head", "its seal does not fit the order, chains and seals of the records")

    def _corrupt(self, record: str, reason: str) -> CorruptRecord:
        return CorruptRecord(run_id=self.run_id, record=record, reason=reason)


def check_entered(run_id: str, entered: Iterable[AnswerEntered], rows: Iterable[AnswerRow]) -> None:
    """Check that every answer the journal acted on is among those people gave, to the byte. Raises: CorruptRecord."""
    given = {_given(row) for row in rows if row.accepted}
    for answer in entered:
        if _acted_on(answer) not in given:
            raise CorruptRecord(
                run_id=run_id,
                record=f"the answer to {answer.question_id}",
                reason=f"the journal acted on {answer.choice} by {answer.by}, no such answer is among those given",
            )


def _given(row: AnswerRow) -> tuple[str | None, ...]:
    came_with = (digest(data) if data is not None else None for data in (row.result, row.request))
    return (row.question_id, row.choice, row.by, row.at, row.note, row.ref, row.door, row.role, *came_with)


def _acted_on(answer: AnswerEntered) -> tuple[str | None, ...]:
    said = (answer.question_id, answer.choice, answer.by, answer.answered_at, answer.note, answer.ref)
    came_with = (pointer.digest if pointer is not None else None for pointer in (answer.result, answer.request))
    return (*said, answer.door, answer.role, *came_with)
