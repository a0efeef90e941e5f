"""The report of one shadow run: what it would have written, alone or compared with what was done. Plain data.

Called by the command line and the console.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from milepost.errors import MisuseError
from milepost.protocol.role import Role, calls_of
from milepost.shadow.comparing import Line, Stands, alone, as_named, compare, matching_fields, one_sided
from milepost.shadow.others import Other, other_side, writes_of
from milepost.shadow.writes import Write
from milepost.stores.contract import Store
from milepost.views.opened import read_trusted

COMPARED = (Stands.AGREED, Stands.DIFFERENT, Stands.MISSED, Stands.EXTRA)


@dataclass(frozen=True, slots=True)
class Report:
    """What one shadow run would have written. `against` is None when it is compared with nothing."""

    run_id: str
    task: str
    head: str  # seal over the run's journal as it was read
    versions: dict[str, str]
    started_at: str
    status: str
    calls: Role
    effect: str  # '' for all
    left_out: Sequence[str]  # effects of either side that are not compared
    on: Sequence[str]
    against: Other | None
    lines: Sequence[Line]

    @property
    def counts(self) -> dict[str, int]:
        """Return how many writes agreed, differ, were missed, are extra."""
        found = Counter(line.stands for line in self.lines)
        return {str(stands): found[stands] for stands in COMPARED}

    @property
    def agreement(self) -> float | None:
        """Return the share of equal writes among all of either side; None when nothing was compared."""
        return None if self.against is None else agreement_of(self.counts)

    def to_json(self) -> dict[str, Any]:
        """Return it as data: what `--json` writes and the console shows."""
        only_here, only_there = one_sided(self.lines)
        return {
            "run_id": self.run_id,
            "task": self.task,
            "shadow": True,
            "started_at": self.started_at,
            "status": self.status,
            "versions": self.versions,
            "head": self.head,
            "effect": self.effect,
            "left_out": list(self.left_out),
            "against": {"name": self.against.name, "digest": self.against.digest} if self.against else None,
            "on": list(self.on),
            "would_count": sum(line.would is not None for line in self.lines),
            "counts": self.counts if self.against else None,
            "agreement": self.agreement,
            "fields_only_here": only_here,
            "fields_only_there": only_there,
            "lines": [line.to_json() for line in self.lines],
        }


def agreement_of(counts: dict[str, int]) -> float | None:
    """Return the share of equal writes; None without any write on either side."""
    total = sum(counts.values())
    return counts[str(Stands.AGREED)] / total if total else None


def report(
    store: Store, run_id: str, *, against: str | None = None, on: Sequence[str] = (), effect: str = ""
) -> Report:
    """Read a shadow run and compare it with a CSV file, a JSON-lines file or another run, if one is named.

    Raises: MisuseError (a live run, an unreadable file, no field to match by), RunUnknown, CorruptRecord.
    """
    opened = read_trusted(store, run_id)
    if not opened.row.shadow:
        raise MisuseError(reason=f"run {run_id} is a live run: what it sent stands in `milepost show {run_id}`")
    other = other_side(store, against) if against is not None else None
    all_would = writes_of(store, opened)
    left_out = _left_out(run_id, effect, all_would, other.writes if other is not None else [])
    would = _of_effect(all_would, effect)
    fields, lines = ((), alone(would)) if other is None else _matched(would, other.writes, effect, on)
    started = opened.snapshot.started
    return Report(
        run_id=opened.row.run_id,
        task=opened.row.task,
        head=opened.head.seal.hex(),
        versions=dict(started.versions) if started else {},
        started_at=opened.row.started_at,
        status=str(opened.row.progress.status),
        calls=calls_of(opened.snapshot),
        effect=effect,
        left_out=left_out,
        on=fields,
        against=other,
        lines=lines,
    )


def _matched(
    would: Sequence[Write], all_did: Sequence[Write], effect: str, on: Sequence[str]
) -> tuple[Sequence[str], list[Line]]:
    """Return the fields that writes are matched by, and how they compare. Raises: MisuseError."""
    did = as_named(_of_effect(all_did, effect, but_unnamed=True), would)
    _check_effects(would, did, effect)
    fields = list(on) or matching_fields(would, did)
    return fields, compare(would, did, fields)


def _left_out(run_id: str, effect: str, would: Sequence[Write], did: Sequence[Write]) -> list[str]:
    """Return the effects besides the one that is asked for. Raises: MisuseError when neither side has that one."""
    names = sorted({write.effect for write in (*would, *did)} - {""})
    if effect and effect not in names:
        found = ", ".join(names) or "none at all"
        raise MisuseError(reason=f"no effect {effect!r} in run {run_id} or what it is compared with; there: {found}")
    return [name for name in names if effect and name != effect]


def _of_effect(writes: Sequence[Write], effect: str, *, but_unnamed: bool = False) -> list[Write]:
    """Return the writes of one effect; `but_unnamed` keeps those of which nobody knows the effect."""
    return [w for w in writes if not effect or w.effect == effect or (but_unnamed and not w.effect)]


def _check_effects(would: Sequence[Write], did: Sequence[Write], effect: str) -> None:
    """Refuse to compare writes of several effects with rows that do not say of which they are."""
    names = sorted({write.effect for write in would})
    if not effect and len(names) > 1 and any(not write.effect for write in did):
        raise MisuseError(
            reason=f"the run has several effects ({', '.join(names)}) and the file does not say of which each row is: "
            "name one with --effect, or give the file a column `effect`"
        )
