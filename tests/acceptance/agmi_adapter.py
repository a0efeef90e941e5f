"""Milepost as `agent-memory-integrity` sees a store: each verified checkpoint with its output is one entry of a run.

The hands of the attacker know our format: they change outputs together with their pointers, cut tails with their
heads, and seal what they forge as well as they can without the key. The tool's own answer is `resume --check`.
Also for the command line of that suite: `agmi-check --adapter agmi_adapter:MilepostAdapter`.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from agmi.adapters.base import MemoryAdapter, Record

from milepost import step, task
from milepost.errors import StepFailed
from milepost.records.canonical import digest
from milepost.records.seal import Place, Sealer
from milepost.runtime.active import RunOptions
from milepost.runtime.check import check_run
from milepost.stores.sqlite.store import SqliteStore

OURS, THEIRS = "ours", "theirs"
COLUMNS = ("seq", "chain", "kind", "body", "seal", "digest", "media_type", "data")
ENTRIES = """
SELECT j.seq, j.chain, j.kind, j.body, j.seal, j.digest, j.media_type, j.data FROM journal j
JOIN runs r ON r.number = j.run WHERE r.run_id = ? AND j.kind = 'step_verified' ORDER BY j.seq
"""

_limits: dict[str, int] = {}


@step
def remember(context: str, number: int) -> str:
    return f"{context} remembers {number}"


@task
def remembering(context: str) -> str:
    for number in count():
        if number == _limits[context]:
            raise RuntimeError("that is all for now")
        remember(context, number)
    return context


class MilepostAdapter(MemoryAdapter):
    """One run with a seal key, stopped between two steps; a second run beside it."""

    name = "milepost"
    seal_key: bytes | None = b"a key that the attacker of the files does not have"
    supports_replay = True
    supports_metadata = True
    supports_snapshot = True

    def setup(self) -> None:
        self.teardown()
        self._folder = Path(tempfile.mkdtemp(prefix="milepost-agmi-"))
        self._path = self._folder / "store" / "store.sqlite"

    def teardown(self) -> None:
        if hasattr(self, "_folder"):
            shutil.rmtree(self._folder, ignore_errors=True)

    # ── the tool's own doors ──

    def seed(self, n: int) -> None:
        self._remember(OURS, n)

    def seed_other(self, n: int) -> None:
        self._remember(THEIRS, n)

    def append_genuine(self) -> None:
        self._remember(OURS, _limits[OURS] + 1)

    def _remember(self, run_id: str, limit: int) -> None:
        _limits[run_id] = limit
        with self._store() as store, suppress(StepFailed):
            remembering.options(store=store, seal_key=self.seal_key, environ=self._environ).run(run_id, run_id)

    def reload(self) -> None:
        with self._store():
            pass

    def verify(self) -> bool:
        """Ask what a resume would say; the first of its six rules is trust."""
        with self._store() as store:
            options = RunOptions(store=store, seal_key=self.seal_key, environ=self._environ)
            trust = check_run(remembering.spec, OURS, store, options)[0]
        self.verify_detail = trust.found
        return trust.state == "ok"

    @contextmanager
    def _store(self) -> Iterator[SqliteStore]:
        with closing(SqliteStore(self._path, create=True)) as store:
            yield store

    @property
    def _environ(self) -> dict[str, str]:
        return {"XDG_STATE_HOME": str(self._folder / "state")}

    # ── the attacker's hands ──

    @contextmanager
    def _sql(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path)) as connection:
            yield connection
            connection.commit()

    def read_all_raw(self) -> list[Record]:
        return self._read(OURS)

    def read_other_raw(self) -> list[Record]:
        return self._read(THEIRS)

    def _read(self, run_id: str) -> list[Record]:
        with self._sql() as connection:
            rows = connection.execute(ENTRIES, (run_id,)).fetchall()
        return [Record(n, {**dict(zip(COLUMNS, row, strict=True)), "owner": run_id}) for n, row in enumerate(rows)]

    def write_raw(self, record: Record) -> None:
        entries = self.read_all_raw()
        if record.seq == len(entries):
            self._insert(record.fields)
        else:
            self._overwrite(entries[record.seq].fields["seq"], record.fields)

    def _overwrite(self, seq: int, fields: dict[str, Any]) -> None:
        with self._sql() as connection:
            changes = ", ".join(f"{name} = :{name}" for name in COLUMNS[1:])
            connection.execute(f"UPDATE journal SET {changes} WHERE run = 1 AND seq = :at", {**fields, "at": seq})

    def _insert(self, fields: dict[str, Any]) -> None:
        """Add an entry at the end, sealed as well as somebody can who does not have the key."""
        sealer = Sealer(OURS, None)
        with self._sql() as connection:
            places = [Place(*row) for row in connection.execute("SELECT seq, chain, seal FROM journal WHERE run = 1")]
            last = next(place.seal for place in reversed(places) if place.chain == fields["chain"])
            place = Place(len(places) + 1, fields["chain"], b"")
            seal = sealer.seal(last, place.seq, place.chain, fields["kind"], fields["body"])
            values = ", ".join(f":{name}" for name in COLUMNS)
            entry = {**fields, "seq": place.seq, "seal": seal}
            connection.execute(f"INSERT INTO journal (run, {', '.join(COLUMNS)}) VALUES (1, {values})", entry)
            head = sealer.head_of([*places, place._replace(seal=seal)])
            connection.execute("UPDATE runs SET head_seq = ?, head_seal = ? WHERE number = 1", (place.seq, head))

    def delete_raw(self, seq: int) -> None:
        """Take an entry out; of the last one also what stands behind it, and set the head's number back."""
        entries = self.read_all_raw()
        first = entries[seq].fields["seq"]
        after = 2**31 if seq == len(entries) - 1 else first + 1
        with self._sql() as connection:
            connection.execute("DELETE FROM journal WHERE run = 1 AND seq >= ? AND seq < ?", (first, after))
            connection.execute(
                "UPDATE runs SET head_seq = (SELECT max(seq) FROM journal WHERE run = 1) WHERE number = 1"
            )

    def replay_onto(self, victim_seq: int, donor: Record) -> None:
        self._overwrite(self.read_all_raw()[victim_seq].fields["seq"], donor.fields)

    def mutate_payload(self, record: Record) -> Record:
        """Change the output and, as somebody who knows the format would, the pointer to it."""
        content = bytes(record.fields["data"]) + b"  [TAMPERED]"
        body = json.loads(record.fields["body"])
        body["output"].update(digest=digest(content), size=len(content))
        record.fields.update(data=content, digest=digest(content))
        record.fields.update(body=json.dumps(body, sort_keys=True, separators=(",", ":")).encode())
        return record

    def read_meta(self, seq: int) -> dict[str, Any]:
        meta: dict[str, Any] = json.loads(self.read_all_raw()[seq].fields["body"])
        return meta

    def write_meta(self, seq: int, meta: dict[str, Any]) -> None:
        record = self.read_all_raw()[seq]
        record.fields["body"] = json.dumps(meta, sort_keys=True, separators=(",", ":")).encode()
        self.write_raw(record)

    def snapshot_store(self) -> object:
        return self._copy_store(self._path.parent)

    def restore_store(self, token: object) -> None:
        self._restore_store(str(token), self._path.parent)

    # ── what the suite asks about an entry ──

    def identity_of(self, record: Record) -> str:
        return f"{record.fields['owner']}:{record.fields['seq']}"

    def payload_of(self, record: Record) -> str:
        return repr(record.fields["data"])

    def owner_of(self, record: Record) -> str:
        return str(record.fields["owner"])


class WithoutKey(MilepostAdapter):
    """The same with plain digests."""

    name = "milepost without a seal key"
    seal_key = None
