"""Trials on a run that stands before its end: damaged records and artifacts, changed sources, other versions.

Damage must be refused by name, or asked about; it must never be run over. What a resume does not read by design,
records inside a finished step, `verify` must name.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from milepost.drill.changing import change
from milepost.drill.order import RUN_ID, Told
from milepost.drill.outcome import Outcome, Verdict
from milepost.drill.points import Point
from milepost.drill.standing import Books
from milepost.drill.world import World, is_refusal
from milepost.records.model import Record, StepVerified, VersionsNoted
from milepost.runtime.opening import read_snapshot
from milepost.runtime.verify import verify_run
from milepost.stores.contract import StoredRecord
from milepost.stores.sqlite.store import SqliteStore


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A verified record of the reference: its number, its step, the digest of its output."""

    seq: int
    path: str
    digest: str
    is_file: bool


def checkpoints(store: Path) -> list[Checkpoint]:
    """Return the checkpoints of the run in a store, in order; of a step done again the newest."""
    verified = [(line.seq, record) for line, record in _records(store) if isinstance(record, StepVerified)]
    newest = {record.path: (seq, record) for seq, record in verified}
    return [Checkpoint(seq, r.path, r.output.digest, r.output.where == "file") for seq, r in newest.values()]


def _records(store: Path) -> Sequence[tuple[StoredRecord, Record]]:
    with closing(SqliteStore(store, create=False)) as opened:
        return read_snapshot(opened, RUN_ID, None, every_chain=True).records


# ── a copy, damaged ─────────────────────────────────────────────────────────────────────────────────


def flip(store: Path, checkpoint: Checkpoint) -> None:
    """Turn one bit of a checkpoint's record round."""
    with _sql(store) as db:
        ((body,),) = db.execute("SELECT body FROM journal WHERE seq = ?", (checkpoint.seq,)).fetchall()
        flipped = bytearray(body)
        flipped[len(flipped) // 2] ^= 1
        db.execute("UPDATE journal SET body = ? WHERE seq = ?", (bytes(flipped), checkpoint.seq))


def remove(store: Path, checkpoint: Checkpoint) -> None:
    """Take a checkpoint's artifact away."""
    if checkpoint.is_file:
        for file in store.parent.rglob(checkpoint.digest):
            file.unlink()
    with _sql(store) as db:
        db.execute("UPDATE journal SET digest = NULL, data = NULL WHERE digest = ?", (checkpoint.digest,))
        db.execute("DELETE FROM artifacts WHERE digest = ?", (checkpoint.digest,))


def cut(store: Path, checkpoint: Checkpoint) -> None:
    """Cut the journal off before a checkpoint."""
    with _sql(store) as db:
        db.execute("DELETE FROM journal WHERE seq >= ?", (checkpoint.seq,))


@contextmanager
def _sql(store: Path) -> Iterator[sqlite3.Connection]:
    """Connect as somebody who can write to the file; what was done is committed at the end."""
    with closing(sqlite3.connect(store)) as db:
        yield db
        db.commit()


DAMAGE: dict[str, Callable[[Path, Checkpoint], None]] = {"flip": flip, "missing": remove, "cut": cut}


def damaged(world: World, kind: str, path: str, number: int) -> Outcome:
    """Damage a copy of a stopped world's store and resume from it: it must be refused, and nothing may run."""
    point = f"{kind}:{path}"
    checkpoint = next((found for found in checkpoints(world.store) if found.path == path), None)
    if checkpoint is None:
        return Outcome(kind, point, Verdict.UNTRIED, said="this time the run had no such checkpoint")
    folder = world.base / f"damaged-{kind}-{number}"
    store, state = folder / "store" / "store.sqlite", folder / "state"
    shutil.copytree(world.store.parent, store.parent)
    shutil.copytree(world.state, state)
    DAMAGE[kind](store, checkpoint)
    told = world.run({"MILEPOST_STORE": str(store), "XDG_STATE_HOME": str(state)})
    named = _unproven(store, state) if told.status == 0 else ""
    shutil.rmtree(folder)
    return _refused(kind, point, told, named, checkpoint)


def _unproven(store: Path, state: Path) -> str:
    """Return what `verify` names in a store that a resume went on from."""
    with closing(SqliteStore(store, create=False)) as opened:
        verdicts = verify_run(opened, RUN_ID, None, {"XDG_STATE_HOME": str(state)})
    return "; ".join(verdict.found for verdict in verdicts if not verdict.ok)


def _refused(kind: str, point: str, told: Told, named: str, checkpoint: Checkpoint) -> Outcome:
    record = f"record {checkpoint.seq}, step_verified {checkpoint.path}"
    if is_refusal(told):
        return Outcome(kind, point, Verdict.REFUSED, record, told.said)
    if named and "/" in checkpoint.path:
        return Outcome(kind, point, Verdict.REFUSED, record, f"verify: {named}")
    return Outcome(kind, point, Verdict.FAILED, record, f"it was not refused: {told.said}")


# ── something changed meanwhile ─────────────────────────────────────────────────────────────────────


def sources(store: Path, here: str) -> list[dict[str, Any]]:
    """Return the descriptors of everything the run in a store read."""
    found: dict[str, dict[str, Any]] = {}
    with closing(SqliteStore(store, create=False)) as opened:
        books = Books(opened, here)
        for record in books.records:
            for entry in books.value(getattr(record, "sources", None)) or []:
                if entry["role"] == "read":
                    found[repr(entry["descriptor"])] = entry["descriptor"]
    return list(found.values())


def changed_source(world: World, name: str, descriptor: dict[str, Any], stop: Point) -> Outcome:
    """Change what the run read while it is down: a resume must ask."""
    point = f"source:{name}"
    world.run(stop=stop.place)
    record = world.newest_record()
    why_not = change(descriptor, world.folder)
    if why_not:
        return Outcome("source", point, Verdict.UNTRIED, record, why_not)
    told = world.run()
    if told.code == "source-changed":
        return Outcome("source", point, Verdict.ASKED, record, told.said)
    return Outcome("source", point, Verdict.FAILED, record, f"nobody was asked: {told.said}", output=world.output())


def changed_versions(world: World, stop: Point) -> Outcome:
    """Resume with another model and other code of every step: recorded, or asked."""
    world.run(stop=stop.place)
    record = world.newest_record()
    told = world.run(versions=True)
    if told.code == "versions-changed":
        return Outcome("versions", "versions", Verdict.ASKED, record, told.said)
    noted = _noted(world.store)
    if told.status == 0 and noted:
        return Outcome("versions", "versions", Verdict.SURVIVED, record, f"recorded: {', '.join(noted)}")
    said = f"neither recorded nor asked: {told.said}"
    return Outcome("versions", "versions", Verdict.FAILED, record, said, output=world.output())


def _noted(store: Path) -> Sequence[str]:
    return [record.what or "the task" for _, record in _records(store) if isinstance(record, VersionsNoted)]
