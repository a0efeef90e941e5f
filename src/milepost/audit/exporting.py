"""Writes what a store says of a run as lines: heading, records in order with their artifacts, answers, the end.

One page of records is in memory at a time. What cannot be trusted is written as it lies in the store: the heading says
what was proven, and a check of the file refuses it by name. Called by `files`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

from milepost.audit.contents import (
    CARRIED_MAX,
    Heading,
    answer_content,
    artifact_content,
    cancel_content,
    end_content,
    heading_content,
    read_record,
    record_content,
)
from milepost.audit.lines import Content, Line, Scribe
from milepost.audit.listing import Listing
from milepost.errors import MilepostError
from milepost.protocol.snapshot import Snapshot
from milepost.records.model import Pointer
from milepost.records.rows import AnswerRow, CancelRow
from milepost.runtime.keeping import Artifacts
from milepost.stores.contract import Store, StoredRecord

PAGE = 1000
"""Records read from the store at once."""


class Export:
    """One run as it lies in a store, up to the head its heading names."""

    def __init__(self, store: Store, heading: Heading, cancel: CancelRow | None) -> None:
        self._store, self._heading, self._cancel = store, heading, cancel
        self._artifacts = Artifacts(store, heading.run_id, snapshot=Snapshot())
        self._listing = Listing()

    def lines(self, seal_key: bytes | None) -> Iterator[Line]:
        """Yield every line of the file, proven by the run's key when it has one."""
        scribe = Scribe(seal_key if self._heading.seal_name is not None else None)
        counts: Counter[str] = Counter()
        for content in self._contents():
            counts[content["is"]] += 1
            yield scribe.write(content)
        yield scribe.write(end_content(counts))

    def _contents(self) -> Iterator[Content]:
        yield heading_content(self._heading)
        for line in self._records():
            record = read_record(line)
            yield record_content(line, record)
            if record is not None:
                with suppress(ValueError, TypeError):  # spoilt: a check of the file refuses the record
                    self._listing.of_record(record)
                yield from self._listed()
        answers: list[AnswerRow] = self._store.answers(self._heading.run_id)
        yield from map(answer_content, answers)
        if self._cancel is not None:
            yield cancel_content(self._cancel)

    def _records(self) -> Iterator[StoredRecord]:
        after, last = 0, self._heading.head_seq
        while page := self._store.records(self._heading.run_id, after=after, limit=PAGE):
            yield from (line for line in page if line.seq <= last)
            after = page[-1].seq
            if after >= last:
                return

    def _listed(self) -> Iterator[Content]:
        while (found := self._listing.take()) is not None:
            yield self._artifact(*found)

    def _artifact(self, what: str, pointer: Pointer) -> Content:
        if not self._heading.with_artifacts:
            return artifact_content(what, pointer, None, None)
        if pointer.size > CARRIED_MAX:
            return artifact_content(what, pointer, None, f"it is larger than {CARRIED_MAX:,} bytes")
        try:
            data = self._artifacts.load(pointer, what)
            self._listing.of_artifact(what, data)
        except (MilepostError, ValueError, KeyError, TypeError) as error:
            return artifact_content(what, pointer, None, f"{type(error).__name__}: {error}")
        return artifact_content(what, pointer, data, None)
