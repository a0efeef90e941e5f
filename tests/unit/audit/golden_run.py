"""A file in each form with one record of every kind, as Milepost wrote it when the format was fixed.

`python tests/unit/audit/golden_run.py` writes them again when a kind of record was added, and only if the old ones
still hold: a change of wording, order or style is a new format (`FORMAT`), for files that people keep stay checkable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from milepost.audit.contents import (
    Heading,
    answer_content,
    artifact_content,
    cancel_content,
    end_content,
    heading_content,
    record_content,
)
from milepost.audit.files import FORMS, check_file, write_record
from milepost.audit.lines import FORMAT, Content, Line, Scribe
from milepost.audit.listing import Listing
from milepost.records.canonical import digest
from milepost.records.model import KINDS, Choice, ErrorRecord, Pointer, Record
from milepost.records.rows import AnswerRow, CancelRow
from milepost.records.seal import Sealer, key_name
from milepost.records.written import encode_record
from milepost.runtime.verify import Verdict
from milepost.stores.contract import StoredRecord

FOLDER = Path(__file__).parent / "golden"
KEY = b"a golden key"
RUN = "golden"
TIME = "2026-11-02T08:00:00.000000+00:00"
HARD_TEXT = '=text "with" <b>quotes</b>, \\ and\nlines; -1 \u202e ü 🧭'
BY_NAME: dict[str, Any] = {
    "at": TIME,
    "until": "2026-11-02T09:00:00.000000+00:00",
    "answered_at": TIME,
    "status": "done",
    "outcome": "applied",
    "path": "match[INV-7]",
    "question_id": "q-0123456789",
    "inner_head": None,
    "inner_count": None,
    "spent": {"input_tokens": 1200, "output_tokens": 80, "cost": "0.02", "currency": "USD"},
    "holder": {"pid": 7, "host": "desk"},
    "old": {"code": "a"},
    "new": {"code": "b"},
    "about": {"approvals": 2, "approvers": ["finance"], "agents": ["agent:x@desk"], "request": "ab" * 32},
}
BY_TYPE: dict[str, Any] = {
    "str": HARD_TEXT,
    "int": 7,
    "bool": True,
    "float": 0.25,
    "Data": {"a": 1},
    "ErrorRecord": ErrorRecord("ValueError", HARD_TEXT),
    "tuple[str, ...]": ("one", HARD_TEXT),
    "tuple[Choice, ...]": (Choice("keep", "does nothing"), Choice("stop", "ends the run")),
}


def contents() -> Iterator[Content]:
    """Yield the content of every line but the end."""
    records, head = _journal()
    yield heading_content(_heading(len(records), head))
    listing = Listing()
    for line, record in records:
        yield record_content(line, record)
        listing.of_record(record)
        while (found := listing.take()) is not None:
            what, pointer = found
            yield artifact_content(what, pointer, _data(what) if pointer.size == len(_data(what)) else None, None)
    yield from map(answer_content, _answers())
    yield cancel_content(Sealer(RUN, KEY).sealed(CancelRow(RUN, "bob@desk", TIME, HARD_TEXT)))


def lines() -> Iterator[Line]:
    """Yield every line, proven."""
    scribe, counts = Scribe(KEY), Counter[str]()
    for content in contents():
        counts[content["is"]] += 1
        yield scribe.write(content)
    yield scribe.write(end_content(counts))


def _heading(count: int, head: bytes) -> Heading:
    verdicts = (Verdict("records", True, "they hold"), Verdict("artifacts", False, HARD_TEXT))
    facts = {"run_id": RUN, "task": "reconcile", "family": RUN, "exported_at": TIME, "exported_by": "ada@desk"}
    return Heading(
        milepost="0.1.0",
        seal_name=key_name(KEY),
        head_seq=count,
        head_seal=head.hex(),
        with_artifacts=True,
        verdicts=verdicts,
        **facts,
    )


def _journal() -> tuple[list[tuple[StoredRecord, Record]], bytes]:
    sealer, before, head, found = Sealer(RUN, KEY), None, None, []
    for seq, cls in enumerate(KINDS.values(), 1):
        record = cls(**{field.name: _value(cls.kind, field.name, str(field.type)) for field in fields(cls)})
        body = encode_record(record)
        before = sealer.seal(before, seq, record.chain(), record.kind, body)
        head = sealer.head(head, seq, record.chain(), before)
        found.append((StoredRecord(seq, record.chain(), record.kind, body, before), record))
    return found, head or b""


def _value(kind: str, name: str, annotation: str) -> Any:
    if name in BY_NAME:
        return BY_NAME[name]
    plain = annotation.removesuffix(" | None")
    if plain == "Pointer":
        data = _data(f"{name} of {BY_NAME['path']}")
        return Pointer(digest(data), len(data), "application/json")
    return BY_TYPE[plain]


def _data(what: str) -> bytes:
    if what.startswith("files of"):
        return b"[]"
    return f'{{"what":"{what}"}}'.encode()


def _answers() -> list[AnswerRow]:
    def answer(by: str, choice: str, **more: Any) -> AnswerRow:
        return Sealer(RUN, KEY).sealed(AnswerRow("q-0123456789", RUN, choice, by, TIME, HARD_TEXT, **more))

    came_with = {name: _data(f"{name} of {BY_NAME['path']}") for name in ("result", "request")}
    return [
        answer(HARD_TEXT, HARD_TEXT, ref=HARD_TEXT, door=HARD_TEXT, role=HARD_TEXT, **came_with),
        answer("eve@desk", "stop", place=0),
    ]


def main() -> None:
    """Write the files of this format, after the old ones have been checked. Crash: some old, some new."""
    FOLDER.mkdir(exist_ok=True)
    for form in FORMS:
        path = FOLDER / f"format-{FORMAT}.{form}"
        if path.exists():
            check_file(path, KEY)
        with path.open("wb") as out:
            write_record(lines(), FORMS[form], out)


if __name__ == "__main__":
    main()
