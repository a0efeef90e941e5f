"""What each kind of line holds: the sealed bytes as they are stored, beside them what people read, derived from them.

Each kind has a function that builds it from what it is about and one that reads that back, so that whoever checks a
file writes every line again and compares. Pure. Called by `exporting` and `checking`.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import milepost
from milepost.audit.lines import FORMAT, Content
from milepost.records.model import Pointer, Record
from milepost.records.rows import AnswerRow, CancelRow
from milepost.records.written import UNREADABLE, decode_record
from milepost.runtime.verify import Verdict
from milepost.stores.contract import Head, RunRow, StoredRecord
from milepost.views.summaries import summary
from milepost.views.words import clock_time

_CANNOT_BE_READ = {"says": "it cannot be read"}
CARRIED_MAX = 64 * 1024
"""Bytes of an artifact up to which a file carries it when asked to; a larger one is listed by its digest only."""


@dataclass(frozen=True, slots=True)
class Heading:
    """The first line: which run, up to which record, who exported it when, and what was proven then."""

    milepost: str
    run_id: str
    task: str
    family: str
    seal_name: str | None
    head_seq: int
    head_seal: str
    exported_at: str
    exported_by: str
    with_artifacts: bool
    verdicts: tuple[Verdict, ...]

    @property
    def head(self) -> Head:
        return Head(self.head_seq, bytes.fromhex(self.head_seal))

    @property
    def proven(self) -> bool:
        return all(verdict.ok for verdict in self.verdicts)


def heading_of_run(row: RunRow, verdicts: Sequence[Verdict], *, at: str, by: str, with_artifacts: bool) -> Heading:
    """Return the heading of a run as its row stands: the file goes up to that head."""
    return Heading(
        milepost=milepost.__version__,
        run_id=row.run_id,
        task=row.task,
        family=row.family,
        seal_name=row.seal_name,
        head_seq=row.head.seq,
        head_seal=row.head.seal.hex(),
        exported_at=at,
        exported_by=by,
        with_artifacts=with_artifacts,
        verdicts=tuple(verdicts),
    )


def heading_content(heading: Heading) -> Content:
    says = f"run {heading.run_id} of task {heading.task}, {heading.head_seq} records, exported by {heading.exported_by}"
    says += "; everything was proven then" if heading.proven else "; NOT everything could be proven then"
    facts = {**asdict(heading), "verdicts": [asdict(verdict) for verdict in heading.verdicts]}
    return {"is": "audit", "format": FORMAT, "at": heading.exported_at, "says": says, **facts}


def heading_of(content: Content) -> Heading:
    """Read the first line. Raises: KeyError, TypeError, ValueError when it is none."""
    facts = {field.name: content[field.name] for field in fields(Heading)}
    facts["verdicts"] = tuple(Verdict(**verdict) for verdict in facts["verdicts"])
    heading = Heading(**facts)
    _ = heading.head  # readable
    return heading


# ── records ─────────────────────────────────────────────────────────────────────────────────────────


def record_content(line: StoredRecord, record: Record | None) -> Content:
    """Build the line of a record; `record` None: its bytes cannot be read, and it says so."""
    return {
        "is": "record",
        "seq": line.seq,
        **_readable(record),
        "chain": line.chain,
        "kind": line.kind,
        "seal": line.seal.hex(),
        "body": line.body.decode("utf-8", "surrogateescape"),
    }


def _readable(record: Record | None) -> dict[str, str]:
    try:
        return _told(record) if record is not None else _CANNOT_BE_READ
    except UNREADABLE:  # a record that says what no Milepost writes
        return _CANNOT_BE_READ


def _told(record: Record) -> dict[str, str]:
    found = {
        "at": record.at,
        "path": getattr(record, "path", None),
        "who": who(record),
        "key": getattr(record, "key", None),
        "ref": getattr(record, "ref", None),
    }
    return {**{name: value for name, value in found.items() if value}, "says": summary(record)}


def who(record: Record) -> str | None:
    """Return who did what a record tells: a person by name, else the process that held the run."""
    named: str | None = getattr(record, "by", None) or getattr(record, "agent", None)
    holder: Mapping[str, Any] | None = getattr(record, "holder", None)
    return named or (f"process {holder.get('pid')} on {holder.get('host')}" if holder else None)


def stored_record(content: Content) -> StoredRecord:
    """Read a record's line back as it was stored. Raises: KeyError, TypeError, ValueError when it is none."""
    seq, chain, kind, body = content["seq"], content["chain"], content["kind"], content["body"]
    if type(seq) is not int or not all(type(text) is str for text in (chain, kind, body)):
        raise TypeError("seq is a number, chain, kind and body are texts")
    return StoredRecord(seq, chain, kind, body.encode("utf-8", "surrogateescape"), bytes.fromhex(content["seal"]))


def read_record(line: StoredRecord) -> Record | None:
    """Read a stored record; None when this version cannot."""
    try:
        return decode_record(line.kind, line.body)
    except UNREADABLE:
        return None


# ── rows beside the journal ─────────────────────────────────────────────────────────────────────────


def answer_content(row: AnswerRow) -> Content:
    late = "" if row.accepted else "; it came when others had decided and does not count"
    says = f"{row.question_id} answered {row.choice} by {row.by}" + (f": {row.note}" if row.note else "") + late
    return {"is": "answer", "at": row.at, "who": row.by, "says": says, **_row(row)}


def cancel_content(row: CancelRow) -> Content:
    says = f"{row.by} asked the run to end" + (f": {row.note}" if row.note else "")
    return {"is": "cancel", "at": row.at, "who": row.by, "says": says, **_row(row)}


def _row(row: AnswerRow | CancelRow) -> Content:
    """Tell every field but the seal that is not as usual, so that a later version with more fields writes it alike."""
    given = {
        f.name: getattr(row, f.name) for f in fields(row) if f.name != "seal" and getattr(row, f.name) != f.default
    }
    told = {n: v.decode("utf-8", "surrogateescape") if isinstance(v, bytes) else v for n, v in given.items()}
    return {"row": told, "seal": row.seal.hex() if row.seal is not None else None}


def answer_row(content: Content) -> AnswerRow:
    """Read an answer's line back. Raises: KeyError, TypeError, ValueError, AttributeError when it is none."""
    return AnswerRow(**_row_facts(AnswerRow, content))


def cancel_row(content: Content) -> CancelRow:
    """Read the line of a request to end back. Raises: KeyError, TypeError, ValueError, AttributeError."""
    return CancelRow(**_row_facts(CancelRow, content))


def _row_facts(cls: type, content: Content) -> dict[str, Any]:
    are_bytes = {field.name for field in fields(cls) if str(field.type).startswith("bytes")}
    given = content["row"].items()
    facts = {n: v.encode("utf-8", "surrogateescape") if n in are_bytes and v is not None else v for n, v in given}
    seal = content["seal"]
    return {**facts, "seal": bytes.fromhex(seal) if seal is not None else None}


# ── artifacts, the end ──────────────────────────────────────────────────────────────────────────────


def artifact_content(what: str, pointer: Pointer, data: bytes | None, left_out: str | None) -> Content:
    """Build the line of an artifact: `data` when it is carried here, `left_out` says why it is not though asked for."""
    says = f"{what}, {pointer.size:,} bytes" + (", carried here" if data is not None else "")
    says += f", left out: {left_out}" if left_out else ""
    facts = {"digest": pointer.digest, "size": pointer.size, "media_type": pointer.media_type}
    return {"is": "artifact", "says": says, "of": what, **facts, **_carried(data, left_out)}


def _carried(data: bytes | None, left_out: str | None) -> Content:
    if left_out is not None:
        return {"left_out": left_out}
    if data is None:
        return {}
    try:
        return {"text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}


def carried_data(content: Content) -> bytes | None:
    """Return the bytes that an artifact's line carries, None for none. Raises: TypeError, ValueError."""
    if "text" in content:
        return str(content["text"]).encode("utf-8")
    return base64.b64decode(content["base64"], validate=True) if "base64" in content else None


def end_content(counts: Mapping[str, int]) -> Content:
    names: Sequence[str] = ("record", "answer", "artifact")
    told = ", ".join(f"{counts.get(name, 0):,} {name}{'s' * (counts.get(name, 0) != 1)}" for name in names)
    return {"is": "end", "says": f"the end: {told}", "counts": {name: counts.get(name, 0) for name in names}}


def time_of(content: Content) -> str:
    """Say the time of a line to the second, '' for one without."""
    at = content.get("at")
    return clock_time(at) if isinstance(at, str) and at else ""
