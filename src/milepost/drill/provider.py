"""A test provider: a process of its own with a durable ledger, in every character that providers come in.

It outlives every kill of the task, and ends with the drill, however that ends. `MILEPOST_DRILL_PROVIDER` is its
address in one world of a drill; below it:
`POST /CHARACTER` with an `Idempotency-Key` header and a JSON body applies, `GET /CHARACTER/KEY` looks up (200 or 404),
`GET /ledger` lists what was applied, `POST /order` with {"next": ["busy", "lost", "silent"]} befalls the next calls.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from milepost.drill.moment import moved_on
from milepost.errors import MisuseError

LATE_S = 30.0
"""Seconds until `looks-up-late` shows what it applied, in the time of its world."""
MEMORY_S = 24 * 3600.0
"""Seconds after which `forgets-keys` has forgotten a key, in the time of its world."""
BUSY_FOR_S = 30


class Character(StrEnum):
    """What a provider does with keys and questions."""

    HONOURS_KEYS = "honours-keys"
    LOOKED_UP = "looked-up"  # knows no keys, but finds what it has
    NEITHER = "neither"
    NEVER_ANSWERS = "never-answers"  # applies the first send of a key and hangs up; can be looked up
    FORGETS_KEYS = "forgets-keys"
    LOOKS_UP_LATE = "looks-up-late"


TROUBLE = ("busy", "lost", "silent")
"""429 with Retry-After · applied, then hung up · hung up without applying."""


class Ledger:
    """What was applied in each world, durable; trouble that was ordered for the next calls."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.execute("pragma journal_mode=wal")
        self._db.execute("create table if not exists applied (ref integer primary key, world, key, body, at)")
        self._db.execute("create table if not exists trouble (number integer primary key, world, what)")
        self.lock = threading.Lock()

    def apply(self, world: str, key: str, body: str, at: float) -> None:
        """Crash: applied or not."""
        self._db.execute("insert into applied (world, key, body, at) values (?, ?, ?, ?)", (world, key, body, at))

    def entries(self, world: str, key: str | None = None) -> list[dict[str, Any]]:
        """Return what was applied, by key; of one key the oldest first.

        Neither their order nor a reference tells what arrived first: calls that are made at once arrive in any order,
        and worlds are compared.
        """
        query = "select key, body, at from applied where world = ? order by key, iif(key = '', body, ''), ref"
        counts: Counter[str] = Counter()
        found = []
        for known, body, at in self._db.execute(query, (world,)).fetchall():
            if key in (None, known):
                ref = _ref(known or body)
                counts[ref] += 1
                more = f"-{counts[ref]}" if counts[ref] > 1 else ""
                found.append({"ref": ref + more, "key": known, "body": json.loads(body), "at": at})
        return found

    def order(self, world: str, trouble: list[str]) -> None:
        """Crash: ordered or not."""
        self._db.executemany("insert into trouble (world, what) values (?, ?)", [(world, what) for what in trouble])

    def trouble(self, world: str) -> str:
        """Return what befalls this call, once."""
        row = self._db.execute("select min(number), what from trouble where world = ?", (world,)).fetchone()
        if row[0] is None:
            return ""
        self._db.execute("delete from trouble where number = ?", (row[0],))
        return str(row[1])


def _ref(of: str) -> str:
    return f"ref-{hashlib.sha256(of.encode()).hexdigest()[:8]}"


class Handler(BaseHTTPRequestHandler):
    """One request: `/WORLD/…`."""

    ledger: Ledger
    worlds: Path
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode("utf-8") or "null"
        world, _, what = self.path[1:].partition("/")
        if what == "order":
            with self.ledger.lock:
                self.ledger.order(world, json.loads(body)["next"])
            self._answer(200, {})
        elif what in set(Character):
            self._send(world, Character(what), body)
        else:
            self._answer(404, {"error": f"no character {what!r}: {', '.join(Character)}"})

    def _send(self, world: str, character: Character, body: str) -> None:
        key = self.headers.get("Idempotency-Key") or ""
        with self.ledger.lock:
            trouble, before = self.ledger.trouble(world), self.ledger.entries(world, key)
            if trouble in ("", "lost") and not self._remembers(character, before, world):
                self.ledger.apply(world, key, body, self._now(world))
            entries = self.ledger.entries(world, key)
        if trouble == "busy":
            self._answer(429, {"error": "too many requests"}, {"Retry-After": str(BUSY_FOR_S)})
        elif trouble or (character is Character.NEVER_ANSWERS and not before):
            self.close_connection = True
        else:
            self._answer(200, _receipt(entries[0]))

    def do_GET(self) -> None:
        world, _, what = self.path[1:].partition("/")
        if what == "ledger":
            with self.ledger.lock:
                self._answer(200, [{k: v for k, v in e.items() if k != "at"} for e in self.ledger.entries(world)])
            return
        character, _, key = what.partition("/")
        with self.ledger.lock:
            entries = self.ledger.entries(world, key)
        shown_after = LATE_S if character == Character.LOOKS_UP_LATE else 0.0
        shown = [entry for entry in entries if entry["at"] + shown_after <= self._now(world)]
        self._answer(200 if shown else 404, _receipt(shown[0]) if shown else {"error": "not found"})

    def _remembers(self, character: Character, before: list[dict[str, Any]], world: str) -> bool:
        if character is Character.HONOURS_KEYS:
            return bool(before)
        now = self._now(world)
        return character is Character.FORGETS_KEYS and any(now - entry["at"] < MEMORY_S for entry in before)

    def _now(self, world: str) -> float:
        """Return the time of a world: what its runs waited for has passed here too."""
        return time.time() + moved_on(self.worlds / world / "clock").total_seconds()

    def _answer(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(value).encode("utf-8")
        self.send_response(status)
        for name, text in {**(headers or {}), "Content-Length": str(len(data))}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)


def _receipt(entry: dict[str, Any]) -> dict[str, Any]:
    return {"ref": entry["ref"], "body": entry["body"]}


@contextmanager
def running(database: Path, worlds: Path) -> Iterator[str]:
    """Run the provider in a process of its own; yield its address, below which each world has its own.

    Raises: MisuseError when it does not start, with the last thing it said.
    """
    command = [sys.executable, "-m", "milepost.drill.provider", str(database), str(worlds)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(place or os.getcwd() for place in sys.path)}
    with (
        database.with_suffix(".requests").open("wb") as requests,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=requests, text=True, env=environ
        ) as process,
    ):
        assert process.stdout is not None
        try:
            port = process.stdout.readline().strip()
            if not port:
                said = Path(requests.name).read_text("utf-8", "replace").strip().splitlines()[-1:]
                raise MisuseError(
                    reason=f"the drill's test provider did not start: {''.join(said) or 'it said nothing'}"
                )
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def main() -> None:
    """Serve DATABASE for the worlds below a folder; print the port. It ends with whoever started it, however that went.

    Its input is a pipe of theirs: nobody writes, and the kernel closes it.
    """
    Handler.ledger, Handler.worlds = Ledger(Path(sys.argv[1])), Path(sys.argv[2])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)  # noqa: T201 – whoever started it reads it
    sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
