"""A run that stopped half-way, to be tampered with: built once per seal key, copied for each attempt on it.

It holds what a real one holds: rows and files as artifacts, a finished step with steps and effects inside, an
unfinished one with an applied effect inside, and a second run beside it whose records can be copied over.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from milepost import Applied, Found, Key, NotFound, effect, step, task
from milepost.errors import MilepostError, StepFailed
from milepost.runtime.verify import Verdict, verify_run
from milepost.stores.sqlite.store import SqliteStore

RUN, OTHER = "victim", "other"
KEYS: Mapping[str, bytes | None] = {"digests": None, "keyed": b"a seal key that the attacker does not have"}
LEASE_COLUMNS = ("token", "released", "host", "boot_id", "pid", "since", "beat", "beat_at")


class Ledger:
    """What really happened: bodies that ran, and what the provider accepted under each key."""

    def __init__(self) -> None:
        self.bodies: list[str] = []
        self.accepted: dict[str, str] = {}
        self.sends: list[str] = []
        self.mended = False

    def events(self) -> list[str]:
        return [*self.bodies, *self.sends]


ledger = Ledger()


@step
def read(month: str) -> list[str]:
    ledger.bodies.append("read")
    return [f"{month}-{n}" for n in range(4)]


@step
def scan(month: str) -> str:
    ledger.bodies.append("scan")
    return month * 15_000  # too large for a row


def _find(key: Key, line: str) -> Found[str] | NotFound:
    ref = ledger.accepted.get(str(key))
    return NotFound() if ref is None else Found(ref, ref=ref)


@effect(key=lambda line: line, lookup=_find, settle=timedelta(0), provider="queue")
def post(key: Key, line: str) -> Applied[str]:
    ledger.sends.append(line)
    ref = ledger.accepted.setdefault(str(key), f"receipt-{line}")
    return Applied(ref, ref=ref)


@step
def book(line: str) -> str:
    ledger.bodies.append(f"book {line}")
    return post(line)


@step
def finished(lines: list[str]) -> list[str]:
    ledger.bodies.append("finished")
    return [book(lines[0]), post(lines[1])]


@step
def unfinished(lines: list[str]) -> str:
    ledger.bodies.append("unfinished")
    receipt = book(lines[2])
    post(lines[3])
    if not ledger.mended:
        raise RuntimeError("the power went")
    return receipt


@task
def tampered_month(month: str) -> list[str]:
    lines = read(month)
    scanned = scan(month)
    receipts = finished(lines)
    return [*receipts, unfinished(lines), str(len(scanned))]


REPORT = ["receipt-2026-10-0", "receipt-2026-10-1", "receipt-2026-10-2", "105000"]


@dataclass
class Scene:
    """One copy of the stopped run, and the hands to change it."""

    folder: Path
    seal_key: bytes | None

    @property
    def path(self) -> Path:
        return self.folder / "store.sqlite"

    @property
    def environ(self) -> dict[str, str]:
        return {"XDG_STATE_HOME": str(self.folder / "state"), "HOME": str(self.folder)}

    @contextmanager
    def sql(self) -> Iterator[sqlite3.Connection]:
        """Give the hands of somebody who can write to the file."""
        with closing(sqlite3.connect(self.path)) as connection:
            yield connection
            connection.commit()

    def change(self, statement: str, *values: Any) -> None:
        with self.sql() as connection:
            assert connection.execute(statement, values).rowcount > 0, "the attempt must land"

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.sql() as connection:
            return connection.execute(statement, values).fetchall()

    def number(self, run_id: str = RUN) -> int:
        return int(self.rows("SELECT number FROM runs WHERE run_id = ?", run_id)[0][0])

    def artifacts(self, run_id: str = RUN) -> list[tuple[str, bytes | None]]:
        """Return digest and bytes (None: a file) of every artifact of a run, wherever it lies, in order."""
        return self.rows(
            "SELECT digest, data FROM journal WHERE run = ?1 AND digest IS NOT NULL "
            "UNION ALL SELECT digest, data FROM artifacts WHERE run = ?1",
            self.number(run_id),
        )

    def put_artifact(self, digest: str, data: bytes | None, run_id: str = RUN) -> None:
        """Put other bytes under a digest; None takes the row's bytes away."""
        number = self.number(run_id)
        with self.sql() as connection:
            changed = [
                connection.execute(f"UPDATE {table} SET data = ? WHERE run = ? AND digest = ?", (data, number, digest))
                for table in ("journal", "artifacts")
            ]
            assert sum(cursor.rowcount for cursor in changed) > 0, "the attempt must land"

    def forget_artifact(self, digest: str) -> None:
        """Leave no trace of an artifact."""
        number = self.number()
        self.rows("UPDATE journal SET digest = NULL, media_type = NULL, data = NULL WHERE digest = ?", digest)
        self.rows("DELETE FROM artifacts WHERE run = ? AND digest = ?", number, digest)
        assert digest not in dict(self.artifacts())

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return everything in the store but who held which lease, and the files beside it."""
        with self.sql() as connection:
            names = [row[1] for row in connection.execute("PRAGMA table_info(runs)")]
            kept = ", ".join(name for name in names if name not in LEASE_COLUMNS)
            found = {"runs": connection.execute(f"SELECT {kept} FROM runs ORDER BY number").fetchall()}
            for table in ("journal", "artifacts", "questions", "answers", "claims"):
                found[table] = sorted(connection.execute(f"SELECT * FROM {table}").fetchall(), key=repr)
        files = sorted(path for path in self.folder.glob("store.sqlite.artifacts/*/*"))
        found["files"] = [(path.name, path.lstat().st_size) for path in files]
        return found

    @contextmanager
    def store(self) -> Iterator[SqliteStore]:
        with closing(SqliteStore(self.path, create=False)) as store:
            yield store

    def resume(self, run_id: str = RUN, plan: Any = tampered_month, **more: Any) -> Any:
        with self.store() as store:
            return self._ready(plan, store, more).resume(run_id)

    def run(self, run_id: str, plan: Any, *inputs: Any, **more: Any) -> Any:
        with closing(SqliteStore(self.path, create=True)) as store:
            return self._ready(plan, store, more).run(run_id, *inputs)

    def _ready(self, plan: Any, store: SqliteStore, more: Mapping[str, Any]) -> Any:
        options = {"store": store, "seal_key": self.seal_key, "environ": self.environ, "wait": False}
        return plan.options(**{**options, **more})

    def verdicts(self, run_id: str = RUN) -> list[Verdict]:
        with self.store() as store:
            return verify_run(store, run_id, self.seal_key, self.environ)

    def complaints(self, run_id: str = RUN) -> list[str]:
        return [f"{verdict.what}: {verdict.found}" for verdict in self.verdicts(run_id) if not verdict.ok]


def start(scene: Scene, run_id: str, *inputs: Any, plan: Any = tampered_month) -> None:
    """Run until the power goes."""
    try:
        scene.run(run_id, plan, *inputs)
    except StepFailed:
        return
    raise AssertionError("it was to stop half-way")


def stop_half_way(folder: Path, seal_key: bytes | None) -> dict[str, str]:
    """Build the scene in a folder; return what the provider accepted meanwhile."""
    folder.mkdir(parents=True)
    ledger.__init__()  # type: ignore[misc]  # the world before anything happened
    scene = Scene(folder, seal_key)
    start(scene, RUN, "2026-10")
    start(scene, OTHER, "2026-11")
    return dict(ledger.accepted)


def set_scene(built: Path, accepted: Mapping[str, str], folder: Path, seal_key: bytes | None) -> Scene:
    """Copy the built scene to a fresh folder; the provider remembers what it accepted, nothing else ran yet."""
    shutil.copytree(built, folder)
    ledger.__init__()  # type: ignore[misc]
    ledger.accepted.update(accepted)
    ledger.mended = True
    return Scene(folder, seal_key)


def refused(scene: Scene, **more: Any) -> MilepostError:
    """Resume; see that it was not gone on with, that nothing ran and nothing changed. Return why."""
    before, ran = scene.dump(), len(ledger.events())
    try:
        scene.resume(**more)
    except MilepostError as error:
        found = error
    else:
        raise AssertionError("it was resumed")
    assert len(ledger.events()) == ran, "nothing runs"
    assert scene.dump() == before, "nothing is changed"
    return found


def flipped(value: Any) -> Any:
    """Return a value with one bit of its middle byte the other way round."""
    if isinstance(value, int):
        return value ^ 1
    data = bytearray(value if isinstance(value, bytes) else value.encode("utf-8"))
    if not data:
        return "x" if isinstance(value, str) else b"x"
    data[len(data) // 2] ^= 1
    return bytes(data) if isinstance(value, bytes) else data.decode("utf-8", "replace")


def each_scene(make: Callable[[], Scene], count: int) -> Iterator[tuple[int, Scene]]:
    """Yield a fresh copy for each of so many attempts, and remove it again."""
    for number in range(count):
        scene = make()
        yield number, scene
        shutil.rmtree(scene.folder)


def is_root() -> bool:
    return os.geteuid() == 0
