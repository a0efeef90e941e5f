"""A small plan inside this process for harnesses that need thousands of runs, and what must hold after a fault.

Its provider can be looked up and keeps no keys: whatever is sent twice is applied twice.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

from clock import MovableClock
from tally import Harm, broken

from milepost import Applied, Found, Key, NotFound, effect, step, task
from milepost.errors import MilepostError
from milepost.records.model import Record
from milepost.runtime.opening import read_snapshot
from milepost.runtime.verify import verify_run
from milepost.stores.sqlite.store import SqliteStore

RUN_ID = "r"
LINES = ["a", "b", "c"]
LARGE = 70_000
"""Characters of an output that does not fit into a row."""


class Office:
    """A plan, the provider it writes to, and a clock that nobody waits for."""

    def __init__(self, clock: MovableClock | None = None) -> None:
        self.clock = clock or MovableClock()
        self.applied: Counter[str] = Counter()
        self.results: dict[str, str] = {}
        self.bodies: Counter[str] = Counter()
        self.plan = self._planned()

    def send(self, key: Key, line: str) -> Applied[str]:
        self.applied[str(key)] += 1
        result = self.results.setdefault(str(key), f"receipt of {line}")
        return Applied(result, ref=str(key)[-8:])

    def find(self, key: Key, line: str) -> Found[str] | NotFound:
        known = self.results.get(str(key))
        return Found(known, ref=str(key)[-8:]) if known else NotFound()

    def _planned(self) -> Any:
        send, find, bodies = self.send, self.find, self.bodies

        @step(next="Enlarge.")
        def read(lines: list[str]) -> list[str]:
            bodies["read"] += 1
            return [line.upper() for line in lines]

        @step
        def enlarge(line: str) -> str:
            bodies["enlarge"] += 1
            return line * LARGE

        @effect(lookup=find, settle=timedelta(0), provider="office")
        def announce(key: Key, line: str) -> Applied[str]:
            return send(key, line)

        @step
        def outer(lines: list[str]) -> int:
            bodies["outer"] += 1
            announce(lines[0])
            return len(enlarge(lines[1]))

        @effect(key=lambda line: line, lookup=find, settle=timedelta(0), provider="office")
        def post(key: Key, line: str) -> Applied[str]:
            return send(key, line)

        @task(name="small")
        def small(lines: list[str]) -> list[str]:
            found = read(lines)
            return [str(outer(found)), *post.map(found)]

        return small


def holds_and_resumes(path: Path, office: Office, shown: Sequence[Record], reference: Any) -> None:
    """See that what was shown is there, that everything can be proven, and that the run ends as it should.

    Raises: Violation.
    """
    try:
        with closing(SqliteStore(path, create=True)) as store:
            whole(path)
            if store.run(RUN_ID) is not None:
                holds(store, shown)
            elif shown:
                broken(Harm.SKIPPED, f"{len(shown)} records were shown, the run is gone")
            found = office.plan.options(store=store, clock=office.clock).run(RUN_ID, lines=LINES)
            holds(store, shown)
    except MilepostError as error:
        broken(Harm.STUCK, error)
    ended(office, found, reference)
    shutil.rmtree(path.parent)


def whole(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("pragma integrity_check").fetchall()
    if found != [("ok",)]:
        broken(Harm.FALSELY_VERIFIED, f"the database is damaged: {found}")


def holds(store: SqliteStore, shown: Sequence[Record]) -> None:
    """See that the journal begins with what was shown, and that it can be proven. Raises: Violation."""
    opened = read_snapshot(store, RUN_ID, None, every_chain=True)
    there = [(record.kind, getattr(record, "path", "")) for _, record in opened.records]
    wanted = [(record.kind, getattr(record, "path", "")) for record in shown]
    if there[: len(wanted)] != wanted:
        broken(Harm.SKIPPED, f"shown as durable: {wanted}, found: {there}")
    bad = [verdict for verdict in verify_run(store, RUN_ID, None, {}) if not verdict.ok]
    if bad:
        broken(Harm.FALSELY_VERIFIED, bad)


def ended(office: Office, found: Any, reference: Any) -> None:
    """Compare the outcome. Raises: Violation."""
    twice = {key: count for key, count in office.applied.items() if count != 1}
    if twice:
        broken(Harm.REPEATED, twice)
    if len(office.applied) != len(LINES) + 1:
        broken(Harm.SKIPPED, f"{len(office.applied)} effects were applied")
    if found != reference:
        broken(Harm.FALSELY_VERIFIED, f"{found} instead of {reference}")
