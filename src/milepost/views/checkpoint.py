"""One step or effect in full, as data: its records, its output (bounded) and its sources."""

from __future__ import annotations

import base64
import json
from typing import Any

from milepost.errors import StepUnknown
from milepost.records.canonical import parse
from milepost.records.model import OutcomeRecorded, Pointer, Record, StepVerified
from milepost.runtime.keeping import Artifacts
from milepost.runtime.opening import Opened
from milepost.stores.contract import Store
from milepost.views.summaries import summary

OUTPUT_SIZE_MAX = 64 * 1024
"""Bytes of an output that are loaded for showing; a larger one is only pointed at."""


def checkpoint_object(store: Store, opened: Opened, path: str) -> dict[str, Any]:
    """Return everything recorded about one path. Raises: StepUnknown; CorruptRecord when its output was altered."""
    lines = [(line, record) for line, record in opened.records if getattr(record, "path", None) == path]
    if not lines:
        if opened.refusal is not None:
            raise opened.refusal
        raise StepUnknown(run_id=opened.row.run_id, path=path)
    artifacts = Artifacts(store, opened.row.run_id, snapshot=opened.snapshot)
    last = next((record for _, record in reversed(lines) if _output(record) is not None), None)
    return {
        "run_id": opened.row.run_id,
        "path": path,
        "records": [
            {
                "seq": line.seq,
                "kind": line.kind,
                "seal": line.seal.hex(),
                **json.loads(line.body),
                "says": summary(record),
            }
            for line, record in lines
        ],
        "output": _loaded(artifacts, _output(last), "output"),
        "sources": _loaded(artifacts, getattr(last, "sources", None), "sources"),
    }


def _output(record: Record | None) -> Pointer | None:
    if isinstance(record, StepVerified):
        return record.output
    return record.result if isinstance(record, OutcomeRecorded) else None


def _loaded(artifacts: Artifacts, pointer: Pointer | None, what: str) -> dict[str, Any] | None:
    if pointer is None:
        return None
    found: dict[str, Any] = pointer.to_json()
    if pointer.size <= OUTPUT_SIZE_MAX:
        data = artifacts.load(pointer, what)
        found["value"] = parse(data) if what == "sources" else result_data(data, pointer.media_type)
    return found


def result_data(data: bytes, media_type: str) -> Any:
    """Return a stored output as JSON data: text as a string, bytes as base64."""
    if media_type == "application/json":
        return parse(data)
    if media_type.startswith("text/"):
        return data.decode("utf-8")
    return base64.b64encode(data).decode("ascii")
