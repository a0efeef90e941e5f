"""The accounting queue: an HTTP service with its own database, in its own process.

    POST /exceptions   Idempotency-Key, JSON body → 201 new · 200 same again · 422 same key, other body · 429 busy
    GET  /exceptions?key=…   the entry of a key, or 404; 405 when this queue cannot be looked up
    GET  /ledger   everything accepted; every arrival with its outcome (accepted, repeated, conflict, busy)
    POST /behaviour   change the character (see `behaviour.py`)
Run: `python -m invoices.world.accounting --db FILE [--port 0] [--character NAME] [--behaviour JSON]`.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from invoices.world.behaviour import CHARACTERS, Behaviour, Lookup
from invoices.world.http import Answer, Dropped, Reply, Request, Service, Silence

SCHEMA = """
pragma journal_mode = wal;
pragma synchronous = full;
create table if not exists entries (
    id integer primary key, key text not null, body text not null, accepted_at real not null);
create index if not exists entries_by_key on entries (key);
create table if not exists arrivals (id integer primary key, key text not null, outcome text not null);
"""
KEY_CHARACTERS_MAX = 200


class Queue:
    """Accepts exceptions into a database, with the promises and manners of its behaviour."""

    def __init__(self, database: Path, behaviour: Behaviour) -> None:
        self._database = database
        self._behaviour = behaviour
        self._counted = 0
        self._alone = threading.Lock()
        with closing(self._connect()) as connection:
            connection.executescript(SCHEMA)

    def post(self, request: Request) -> Reply:
        """Accept one exception.

        Crash: the entry and its arrival are committed together before anything is answered; before that, neither.
        """
        key = request.headers.get("idempotency-key", "")
        if not 0 < len(key) <= KEY_CHARACTERS_MAX or not isinstance(request.body, dict):
            return Answer(400, {"error": "expected an Idempotency-Key header and a JSON object"})
        with self._alone, closing(self._connect()) as connection, connection:
            self._counted += 1
            count, behaviour = self._counted, self._behaviour
            answer, outcome = self._accept(connection, key, request.body, count)
            connection.execute("insert into arrivals (key, outcome) values (?, ?)", (key, outcome))
        if count in behaviour.silent_on:
            return Silence()
        return Dropped() if count in behaviour.drop_on else answer

    def find(self, request: Request) -> Answer:
        """Answer the first entry of a key, as far as this queue lets it be seen."""
        behaviour = self._behaviour
        if behaviour.lookup is Lookup.NO:
            return Answer(405, {"error": "this queue cannot be looked up"})
        shown_before = self._now() - (behaviour.late_s if behaviour.lookup is Lookup.LATE else 0.0)
        with closing(self._connect()) as connection:
            row = connection.execute(
                "select id, body from entries where key = ? and accepted_at <= ? order by id",
                (request.query.get("key", ""), shown_before),
            ).fetchone()
        if row is None:
            return Answer(404, {"error": "no exception with this key"})
        return Answer(200, {"ref": ref_of(row[0]), "exception": json.loads(row[1])})

    def ledger(self, _request: Request) -> Answer:
        """Answer everything accepted, everything that arrived, and the sends seen per key."""
        with closing(self._connect()) as connection:
            entries = connection.execute("select id, key, body from entries order by id").fetchall()
            arrivals = connection.execute("select key, outcome from arrivals order by id").fetchall()
        sends: dict[str, int] = {}
        for key, _outcome in arrivals:
            sends[key] = sends.get(key, 0) + 1
        document = {
            "entries": [{"ref": ref_of(id_), "key": key, "exception": json.loads(body)} for id_, key, body in entries],
            "arrivals": [{"key": key, "outcome": outcome} for key, outcome in arrivals],
            "sends": sends,
        }
        return Answer(200, document)

    def behave(self, request: Request) -> Answer:
        """Change the named parts of the character; POSTs are counted from 1 again."""
        with self._alone:
            try:
                self._behaviour = self._behaviour.changed(request.body)
            except ValueError as error:
                return Answer(400, {"error": str(error)})
            self._counted = 0
        return Answer(200, asdict(self._behaviour))

    def _accept(
        self, connection: sqlite3.Connection, key: str, exception: dict[str, Any], count: int
    ) -> tuple[Answer, str]:
        behaviour = self._behaviour
        if behaviour.busy_every and count % behaviour.busy_every == 0:
            wish = {"Retry-After": str(behaviour.retry_after_s)}
            return Answer(429, {"error": "too many requests"}, wish), "busy"
        body = json.dumps(exception, sort_keys=True)
        known = self._remembered(connection, key)
        if known is None:
            return Answer(201, {"ref": ref_of(self._insert(connection, key, body))}), "accepted"
        if known[1] != body:
            return Answer(422, {"error": "this key came with another body before"}), "conflict"
        return Answer(200, {"ref": ref_of(known[0])}), "repeated"

    def _remembered(self, connection: sqlite3.Connection, key: str) -> tuple[int, str] | None:
        if not self._behaviour.honours_keys:
            return None
        youngest: tuple[int, str] | None = connection.execute(
            "select id, body from entries where key = ? and accepted_at > ? order by id desc",
            (key, self._now() - self._behaviour.key_lifetime_s),
        ).fetchone()
        return youngest

    def _insert(self, connection: sqlite3.Connection, key: str, body: str) -> int:
        cursor = connection.execute(
            "insert into entries (key, body, accepted_at) values (?, ?, ?)", (key, body, self._now())
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def _now(self) -> float:
        return time.time() + self._behaviour.clock_ahead_s

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._database, timeout=30.0)
        connection.execute("pragma synchronous = full")
        return connection


def ref_of(id_: int) -> str:
    """Name an entry the way the queue's users see it, such as `AQ-000001`."""
    return f"AQ-{id_:06d}"


def main() -> None:
    """Serve until the starter goes away."""
    parser = argparse.ArgumentParser(prog="invoices.world.accounting", description="The accounting queue.")
    parser.add_argument("--db", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--character", choices=sorted(CHARACTERS))
    parser.add_argument("--behaviour", type=json.loads, default={}, metavar="JSON")
    options = parser.parse_args()
    character = CHARACTERS[options.character] if options.character else Behaviour()
    queue = Queue(options.db, character.changed(options.behaviour))
    routes = {
        ("POST", "/exceptions"): queue.post,
        ("GET", "/exceptions"): queue.find,
        ("GET", "/ledger"): queue.ledger,
        ("POST", "/behaviour"): queue.behave,
    }
    Service(options.port, routes).serve_until_stopped()


if __name__ == "__main__":
    main()
