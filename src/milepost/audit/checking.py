"""Proves a file line by line: writes each line again from what is sealed in it and compares; nothing is taken on trust.

Corrupt, absent and cannot tell are three different answers. Reads no store and keeps no lines. Called by `files`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from milepost.audit.contents import (
    Heading,
    answer_content,
    answer_row,
    artifact_content,
    cancel_content,
    cancel_row,
    carried_data,
    end_content,
    heading_content,
    heading_of,
    record_content,
    stored_record,
)
from milepost.audit.lines import FORMAT, Content, Line, Scribe, without_proof
from milepost.audit.listing import Listing
from milepost.errors import AuditAltered, AuditIncomplete, AuditUnproven, CorruptRecord
from milepost.records.canonical import digest
from milepost.records.model import AnswerEntered
from milepost.records.rows import AnswerRow
from milepost.records.seal import Sealer, key_name
from milepost.records.written import UNREADABLE
from milepost.runtime.proof import JournalProof, check_entered

_ORDER = {"audit": 0, "record": 1, "artifact": 1, "answer": 2, "cancel": 3, "end": 4}
"""What stands before what."""


@dataclass(slots=True)
class Checked:
    """What was proven so far. `missing_key` says why seals cannot be told, None when they were."""

    heading: Heading
    missing_key: str | None
    counts: Counter[str] = field(default_factory=Counter)
    carried: int = 0


class LineCheck:
    """Takes the lines of one file in order; `end` after the last."""

    def __init__(self, file: str, seal_key: bytes | None) -> None:
        self._file, self._key = file, seal_key
        self._number = 0  # of the file's own line
        self._stands = -1
        self._listing = Listing()
        self._entered: list[AnswerEntered] = []
        self._answers: list[AnswerRow] = []
        self._checked: Checked | None = None
        self._scribe = Scribe(None)

    def take(self, number: int, text: str) -> Line:
        """Check the next line, the `number`-th of the file. Raises: AuditAltered, AuditIncomplete, AuditUnproven."""
        self._number = number
        content = self._parsed(text)
        self._check_order(content)
        what = _name(content)
        try:
            again = _AGAIN[content["is"]](self, content)
        except CorruptRecord as error:
            raise self._altered(what, str(error.facts["reason"])) from error
        except UNREADABLE as error:
            raise self._altered(what, f"it cannot be read: {type(error).__name__}: {error}") from error
        line = self._scribe.write(again)
        self._compare(what, line, text)
        self._count(again)
        return line

    def end(self) -> Checked:
        """Say what was proven. Raises: AuditIncomplete when the end is missing."""
        if not self.is_ended or self._checked is None:
            raise self._absent("the end", "the file breaks off before the line that ends it")
        return self._checked

    @property
    def is_ended(self) -> bool:
        """Say whether the line was there that ends a record."""
        return self._stands == _ORDER["end"]

    @property
    def _so_far(self) -> Checked:
        assert self._checked is not None  # the heading comes first, else `_check_order` has refused
        return self._checked

    # ── one line ──

    def _parsed(self, text: str) -> Content:
        try:
            found: Any = json.loads(text)
            content = {name: value for name, value in found.items() if name not in ("line", "proof")}
            self._check_number(found["line"], _name(content))
            if content["is"] not in _ORDER:
                raise ValueError(content["is"])
        except UNREADABLE as error:
            raise self._altered("a line", f"it is no line of an audit record: {type(error).__name__}") from error
        return content

    def _check_number(self, found: object, what: str) -> None:
        expected = self._scribe.number + 1
        if type(found) is int and found > expected:
            raise self._absent(what, f"it is line {found} of the record, line {expected} is missing before it")
        if found != expected:
            raise self._altered(what, f"it says it is line {found} of the record, line {expected} belongs here")

    def _check_order(self, content: Content) -> None:
        stands = _ORDER[content["is"]]
        if stands < self._stands or (stands == self._stands and content["is"] in ("audit", "cancel", "end")):
            raise self._altered(_name(content), "it does not belong here")
        if self._checked is None and content["is"] != "audit":
            raise self._absent("the heading", "the file does not begin with it")
        if content["is"] != "artifact" and (due := self._listing.take()) is not None:
            raise self._absent(f"artifact {due[0]}", "a record points at it, the file does not list it")
        if _ORDER["audit"] <= self._stands <= _ORDER["record"] < stands:
            self._end_records()
        if self._stands <= _ORDER["answer"] < stands:
            self._end_answers()
        self._stands = stands

    def _compare(self, what: str, line: Line, text: str) -> None:
        if without_proof(text) != without_proof(line.text):
            other = self._so_far.heading.milepost
            reason = f"what it shows is not what it seals (as Milepost {other} and this one write it)"
            raise self._altered(what, reason)
        if self._so_far.missing_key is None and text != line.text:
            raise self._altered(what, "its proof does not fit it and the lines before it")

    def _count(self, content: Content) -> None:
        self._so_far.counts[content["is"]] += 1
        self._so_far.carried += "text" in content or "base64" in content

    # ── each kind of line, written again ──

    def _heading(self, content: Content) -> Content:
        if content["format"] != FORMAT:
            reason = f"it is written in format {content['format']}, this Milepost knows format {FORMAT}"
            hint = f"Check it with Milepost {content.get('milepost')}, which wrote it."
            raise AuditUnproven(file=self._file, reason=reason, hint=hint)
        heading = heading_of(content)
        self._checked = Checked(heading, _missing(heading.seal_name, self._key))
        key = self._key if self._checked.missing_key is None else None
        self._scribe, self._sealer = Scribe(key), Sealer(heading.run_id, key)
        self._proof = JournalProof(heading.run_id, self._sealer, tells_seals=self._checked.missing_key is None)
        return heading_content(heading)

    def _record(self, content: Content) -> Content:
        line = stored_record(content)
        record = self._proof.take(line)
        self._listing.of_record(record)
        if isinstance(record, AnswerEntered):
            self._entered.append(record)
        return record_content(line, record)

    def _artifact(self, content: Content) -> Content:
        due = self._listing.take()
        if due is None:
            raise self._altered(_name(content), "no record points at it")
        what, pointer = due
        data = carried_data(content)
        if data is not None:
            if digest(data) != pointer.digest:
                raise self._altered(f"artifact {what}", "its bytes do not have the recorded digest")
            self._listing.of_artifact(what, data)
        return artifact_content(what, pointer, data, content.get("left_out"))

    def _answer(self, content: Content) -> Content:
        row = answer_row(content)
        self._check_seal(row)
        self._answers.append(row)
        return answer_content(row)

    def _cancel(self, content: Content) -> Content:
        row = cancel_row(content)
        self._check_seal(row)
        return cancel_content(row)

    def _end(self, content: Content) -> Content:
        return end_content(self._so_far.counts)

    def _check_seal(self, row: Any) -> None:
        if row.run_id != self._so_far.heading.run_id:
            raise self._altered("a row", f"it is about run {row.run_id}")
        if self._so_far.missing_key is None:
            self._sealer.check_row(row)

    # ── what ends ──

    def _end_records(self) -> None:
        try:
            self._proof.end(self._so_far.heading.head)
        except CorruptRecord as error:
            raise self._altered(str(error.facts["record"]), str(error.facts["reason"])) from error

    def _end_answers(self) -> None:
        try:
            check_entered(self._so_far.heading.run_id, self._entered, self._answers)
        except CorruptRecord as error:
            raise self._absent(str(error.facts["record"]), str(error.facts["reason"])) from error
        except UNREADABLE as error:
            raise self._altered("an answer", f"it cannot be read: {type(error).__name__}: {error}") from error

    def _altered(self, what: object, reason: str) -> AuditAltered:
        return AuditAltered(file=self._file, line=self._number, what=what, reason=reason)

    def _absent(self, what: str, reason: str) -> AuditIncomplete:
        return AuditIncomplete(file=self._file, line=self._number, what=what, reason=reason)


_AGAIN: dict[str, Callable[[LineCheck, Content], Content]] = {
    "audit": LineCheck._heading,
    "record": LineCheck._record,
    "artifact": LineCheck._artifact,
    "answer": LineCheck._answer,
    "cancel": LineCheck._cancel,
    "end": LineCheck._end,
}


def _name(content: Content) -> str:
    """Name a line for people, by what it says it is."""
    match content.get("is"):
        case "record":
            where = f" {content.get('path')}" if content.get("path") else ""
            return f"record {content.get('seq')}, {content.get('kind')}{where}"[:200]
        case "artifact":
            return f"artifact {content.get('of')}"[:200]
        case "audit":
            return "the heading"
        case "end":
            return "the end"
        case other:
            return str(other)[:200]


def _missing(seal_name: str | None, key: bytes | None) -> str | None:
    """Say why seals cannot be told with this key; None when they can."""
    if key_name(key) == seal_name:
        return None
    if seal_name is None:
        return "the file says the run has no seal key, and one is given"
    return f"sealed with key {seal_name}, " + (f"the key given is {key_name(key)}" if key else "no key is given")
