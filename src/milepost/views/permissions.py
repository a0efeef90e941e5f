"""What a task holds against what its effects used: per run, and over the runs of a task. As data.

Counted from intents (used), refusals (wanted) and the start of each run (held). A run that cannot be trusted is named
and not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from milepost.errors import RefusedError
from milepost.records.model import EffectRefused, EffectShadowed, IntentRecorded, Record, RunStarted
from milepost.records.seal import Sealer
from milepost.runtime.opening import check_key, row_of
from milepost.runtime.proof import JournalProof
from milepost.stores.contract import RunRow, Store

PAGE = 1000
"""Records read at once."""


@dataclass(slots=True)
class Permission:
    """One permission of a task: in how many runs it was held, how often it was used or refused, when last."""

    name: str
    held: int = 0
    used: int = 0
    used_at: str = ""
    refused: int = 0
    refused_at: str = ""
    shadowed: int = 0  # sends of shadow runs that would have used it
    wanted_at: str = ""  # used or shadowed last
    effects: set[str] = field(default_factory=set)

    @property
    def stands(self) -> str:
        """Say it in a word, by what happened last: used, refused (wanted and not held); or never used."""
        if self.refused_at > self.wanted_at:
            return "refused"
        return "used" if self.used or self.shadowed else "never used"

    def to_json(self) -> dict[str, Any]:
        counts = {"held": self.held, "used": self.used, "refused": self.refused, "shadowed": self.shadowed}
        times = {"used_at": self.used_at or None, "refused_at": self.refused_at or None}
        return {"permission": self.name, "stands": self.stands, **counts, **times, "effects": sorted(self.effects)}


@dataclass(slots=True)
class Permissions:
    """The permissions of one task, over so many runs."""

    task: str
    runs: int = 0
    untrusted: dict[str, str] = field(default_factory=dict)  # run id -> why it is not counted
    by_name: dict[str, Permission] = field(default_factory=dict)

    def take(self, record: Record) -> None:
        """Count one record in."""
        match record:
            case RunStarted(permissions=names):
                for name in names:
                    self._of(name).held += 1
            case IntentRecorded(permission=str(name)):
                found = self._wanted(name, record)
                found.used += 1
                found.used_at = max(found.used_at, record.at)
            case EffectShadowed(permission=str(name)):
                self._wanted(name, record).shadowed += 1
            case EffectRefused(permission=name):
                found = self._of(name)
                found.refused += 1
                found.refused_at = max(found.refused_at, record.at)
                found.effects.add(record.effect)

    def listed(self) -> list[Permission]:
        """Return them in a lasting order: what was refused first, then what was never used."""
        order = {"refused": 0, "never used": 1, "used": 2}
        return sorted(self.by_name.values(), key=lambda p: (order[p.stands], p.name))

    def _of(self, name: str) -> Permission:
        return self.by_name.setdefault(name, Permission(name))

    def _wanted(self, name: str, record: IntentRecorded | EffectShadowed) -> Permission:
        found = self._of(name)
        found.wanted_at = max(found.wanted_at, record.at)
        found.effects.add(record.effect)
        return found

    def to_json(self) -> dict[str, Any]:
        listed = [permission.to_json() for permission in self.listed()]
        return {"task": self.task, "runs": self.runs, "permissions": listed, "untrusted": self.untrusted}


def permissions_of(store: Store, rows: Iterable[RunRow], seal_key: bytes | None) -> list[Permissions]:
    """Count the permissions of these runs, task by task in the order they come."""
    tasks: dict[str, Permissions] = {}
    for row in rows:
        task = tasks.setdefault(row.task, Permissions(row.task))
        try:
            records = list(_counting(store, row, seal_key))
        except RefusedError as refusal:
            task.untrusted[row.run_id] = str(refusal)
            continue
        task.runs += 1
        for record in records:
            task.take(record)
    return list(tasks.values())


def _counting(store: Store, row: RunRow, seal_key: bytes | None) -> Iterator[Record]:
    """Yield the records that count here, of a journal proven whole. Raises: CorruptRecord, SealKeyMissing."""
    row = row_of(store, row.run_id)
    check_key(row, seal_key)
    proof = JournalProof(row.run_id, Sealer(row.run_id, seal_key))
    while proof.seq < row.head.seq:
        page = store.records(row.run_id, after=proof.seq, limit=min(PAGE, row.head.seq - proof.seq))
        if not page:
            break
        for line in page:
            record = proof.take(line)
            if isinstance(record, (RunStarted, IntentRecorded, EffectRefused, EffectShadowed)):
                yield record
    proof.end(row.head)
