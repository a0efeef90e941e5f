"""What stands at the end of a world, as JSON data to compare: results, checkpoints, effects, counts, the outside.

Never wording, never times, never a world's own folder. Reads the store; changes nothing.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from milepost.drill.order import RUN_ID
from milepost.errors import MilepostError
from milepost.records.canonical import digest
from milepost.records.model import (
    IntentRecorded,
    Outcome,
    OutcomeRecorded,
    Pointer,
    Record,
    StepStarted,
    StepVerified,
)
from milepost.runtime.keeping import Artifacts
from milepost.runtime.opening import read_snapshot
from milepost.runtime.verify import verify_run
from milepost.stores.sqlite.store import SqliteStore

Section: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Standing:
    """One finished run. `result` is the task's, `steps` and `effects` by path, `world` what `observe` saw."""

    result: Any
    steps: Section
    effects: Section
    counts: dict[str, int]
    world: Any = None
    inputs: Section = field(default_factory=dict)  # path -> the call's inputs, in the order of the calls
    spending: frozenset[str] = frozenset()  # steps that said what a model call took
    repeated: tuple[str, ...] = ()  # steps that started again after they were verified
    unproven: tuple[str, ...] = ()  # what `verify` could not prove

    def sections(self) -> dict[str, Any]:
        """Return what is compared, by the name a reader knows it under."""
        return {
            "result": self.result,
            "steps": self.steps,
            "effects": self.effects,
            "counts": self.counts,
            "observe": self.world,
        }


class Books:
    """Reads one run's journal and artifacts. `here` is the world's folder, which no value may depend on."""

    def __init__(self, store: SqliteStore, here: str) -> None:
        opened = read_snapshot(store, RUN_ID, None, every_chain=True)
        if opened.refusal is not None:
            raise opened.refusal
        self.records = [record for _, record in opened.records]
        self._artifacts = Artifacts(store, RUN_ID, snapshot=opened.snapshot)
        self._here = json.dumps(here)[1:-1]

    def value(self, pointer: Pointer | None) -> Any:
        """Return an artifact as JSON data, the world's folder written as $WORLD; bytes by their digest."""
        if pointer is None:
            return None
        data = self._artifacts.load(pointer, "artifact")
        if pointer.media_type == "application/json":
            return json.loads(data.decode("utf-8").replace(self._here, "$WORLD"))
        if pointer.media_type.startswith("text/"):
            return data.decode("utf-8").replace(self._here, "$WORLD")
        return digest(data)

    def steps(self) -> Section:
        verified = {record.path: record for record in self.records if isinstance(record, StepVerified)}
        return {
            path: {"output": self.value(found.output), "checks": list(found.checks), "files": self._files(found.files)}
            for path, found in verified.items()
        }

    def _files(self, pointer: Pointer | None) -> dict[str, Any]:
        return {str(entry["path"]): _content(entry) for entry in self.value(pointer) or []}

    def effects(self) -> Section:
        return {
            record.path: {"key": record.key, "ref": record.ref, "result": self.value(record.result)}
            for record in applied(self.records)
        }

    def inputs(self) -> Section:
        """Return each call's inputs, in the order in which they began."""
        found: Section = {}
        for record in self.records:
            if isinstance(record, StepStarted):
                given = self.value(record.inputs)
                found.setdefault(record.path, given if given is not None else record.inputs_fingerprint)
            elif isinstance(record, IntentRecorded):
                found.setdefault(record.path, self.value(record.request))
        return found

    def counts(self) -> dict[str, int]:
        spending = [record.spent for record in self.records if isinstance(record, StepVerified) and record.spent]
        tokens = sum(int(s.get("input_tokens", 0)) + int(s.get("output_tokens", 0)) for s in spending)
        return {
            "model calls": len(spending),
            "tokens": tokens,
            "effects applied": sum(1 for _ in applied(self.records)),
        }


def _content(entry: Mapping[str, Any]) -> Any:
    """Return the digest of a file, of a folder those of its files."""
    return entry.get("digest") or {file["path"]: file["digest"] for file in entry.get("files", ())}


def applied(records: Iterable[Record]) -> Iterator[OutcomeRecorded]:
    return (r for r in records if isinstance(r, OutcomeRecorded) and r.outcome == Outcome.APPLIED)


def read_standing(store: Path, state: Path, here: str, result: Any, world: Any) -> Standing:
    """Return what stands in a store at the end of its run. Raises: RefusedError when it cannot be trusted."""
    with closing(SqliteStore(store, create=False)) as opened:
        books = Books(opened, here)
        verdicts = verify_run(opened, RUN_ID, None, {"XDG_STATE_HOME": str(state)})
        return Standing(
            result=_everywhere(result, here),
            steps=books.steps(),
            effects=books.effects(),
            counts=books.counts(),
            world=_unordered(_everywhere(world, here)),
            inputs=books.inputs(),
            spending=frozenset(r.path for r in books.records if isinstance(r, StepVerified) and r.spent),
            repeated=tuple(_started_again(books.records)),
            unproven=tuple(f"{verdict.what}: {verdict.found}" for verdict in verdicts if not verdict.ok),
        )


def _everywhere(value: Any, here: str) -> Any:
    """Write the world's folder as $WORLD wherever it occurs."""
    return json.loads(json.dumps(value).replace(json.dumps(here)[1:-1], "$WORLD"))


def _unordered(value: Any) -> Any:
    """Order the lists of what `observe` saw by their content: in which order the outside got it does not count."""
    if isinstance(value, dict):
        return {name: _unordered(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return sorted(map(_unordered, value), key=lambda item: json.dumps(item, sort_keys=True))
    return value


def _started_again(records: Iterable[Record]) -> Iterator[str]:
    verified: set[str] = set()
    for record in records:
        if isinstance(record, StepVerified):
            verified.add(record.path)
        elif isinstance(record, StepStarted) and record.path in verified:
            yield record.path


def is_writable(store: Path) -> bool:
    """Say whether nobody keeps a store locked for writing."""
    with closing(sqlite3.connect(store, timeout=0, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return False
    return True


def newest_record(store: Path) -> str:
    """Say which record the run ends with: `record 12, step_verified match`."""
    if not store.exists():
        return "before there was a store"
    try:
        with closing(SqliteStore(store, create=False)) as opened:
            records = opened.records(RUN_ID)
    except MilepostError as error:
        return str(error)
    if not records:
        return "before its first record"
    last = records[-1]
    path = json.loads(last.body).get("path", "")
    return f"record {last.seq}, {last.kind} {path}".rstrip()
