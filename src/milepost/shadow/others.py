"""What people or the live system did, to compare with: a CSV file, a JSON-lines file, or another run of this store."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from milepost.errors import MisuseError
from milepost.protocol.state import EffectState
from milepost.records.canonical import digest, parse
from milepost.records.model import EffectShadowed, IntentRecorded
from milepost.runtime.keeping import Artifacts
from milepost.runtime.opening import Opened
from milepost.shadow.writes import Write, fields_of, flat
from milepost.stores.contract import Store
from milepost.views.opened import read_trusted

FILE_SIZE_MAX = 64 * 1024 * 1024
"""Bytes of a file that is compared with."""
ROWS_MAX = 100_000


class Other(NamedTuple):
    """What is compared with: its name, a digest of what it said, its writes."""

    name: str
    digest: str
    writes: list[Write]
    run_id: str = ""  # "" for a file
    is_shadow: bool = False


def other_side(store: Store, against: str) -> Other:
    """Read FILE.csv, FILE.jsonl or a run. Raises: MisuseError, RunUnknown, CorruptRecord, and as a run is read."""
    path = Path(against)
    if path.suffix.lower() in (".csv", ".jsonl", ".ndjson") or os.path.isfile(path):
        return _file(path)
    opened = read_trusted(store, against)
    return Other(f"run {against}", opened.head.seal.hex(), writes_of(store, opened), against, opened.row.shadow)


def writes_of(store: Store, opened: Opened) -> list[Write]:
    """Return what a shadow run would have written, or what a live one has: its applied effects, in order."""
    artifacts = Artifacts(store, opened.row.run_id, snapshot=opened.snapshot)
    return [write for state in opened.snapshot.effects.values() if (write := _write(artifacts, state)) is not None]


def _write(artifacts: Artifacts, state: EffectState) -> Write | None:
    noted: EffectShadowed | IntentRecorded | None = state.shadowed
    if noted is None and state.applied is not None:
        noted = next((s.intent for s in state.sends if s.outcome is state.applied), None)
    if noted is None:
        return None  # not reached, or adopted from another run, which wrote it
    about = {
        "provider": noted.provider,
        "key": noted.key,
        "request_digest": noted.request_digest,
        "permission": noted.permission,
        "would_ask": noted.would_ask if isinstance(noted, EffectShadowed) else "",
    }
    request = parse(artifacts.load(noted.request, f"request of {state.path}"))
    return Write(fields_of(request), noted.effect, noted.item_key or "", state.path, about)


# ── files ───────────────────────────────────────────────────────────────────────────────────────────


def _file(path: Path) -> Other:
    try:
        if path.stat().st_size > FILE_SIZE_MAX:
            raise MisuseError(reason=f"{path} is larger than {FILE_SIZE_MAX} bytes: compare a part of it at a time")
        data = path.read_bytes()
    except OSError as error:
        raise MisuseError(reason=f"{path} cannot be read: {error.strerror}") from error
    read = _csv if path.suffix.lower() == ".csv" else _json_lines
    try:
        writes = list(read(data.decode("utf-8-sig")))
    except (ValueError, csv.Error) as error:
        raise MisuseError(reason=f"{path} is not what its name says: {error}") from error
    if len(writes) > ROWS_MAX:
        raise MisuseError(reason=f"{path} has more than {ROWS_MAX} rows: compare a part of it at a time")
    return Other(path.name, digest(data), writes)


def _csv(text: str) -> Iterator[Write]:
    rows = csv.DictReader(text.splitlines(keepends=True), restkey="", strict=True)
    heading = rows.fieldnames or ()
    twice = next((name for number, name in enumerate(heading) if name in heading[:number]), None)
    if twice is not None:
        raise ValueError(f"two columns are called {twice!r}")
    for row in rows:
        if "" in row or None in row.values():
            raise ValueError(f"a row has not as many fields as the heading: {next(iter(row.values()))!r} …")
        yield _named(dict(row))


def _json_lines(text: str) -> Iterator[Write]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        value = json.loads(line)
        if not isinstance(value, dict):
            raise ValueError(f"line {number} is no object")
        yield _named(dict(flat(value)))


def _named(fields: dict[str, Any]) -> Write:
    """Take the columns `effect` and `item_key` for what they are, where there are any."""
    effect, item_key = fields.pop("effect", ""), fields.pop("item_key", "")
    return Write(fields, str(effect), str(item_key))
