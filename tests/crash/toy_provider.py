"""The test provider: a process of its own with a durable ledger, in six characters. It outlives every kill.

`/CHARACTER/WORLD/KEY`: POST applies, GET looks up; `/CHARACTER/WORLD`: GET lists what was applied, per key.
Its clock is the `At` header (seconds), so that nobody waits. Started as `toy_provider.py DATABASE`; prints its port,
ends when its standard input does.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import threading
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LATE_S = 30.0
"""Seconds until `looks-up-late` shows what it applied."""
MEMORY_S = 600.0
"""Seconds after which `forgets-keys` has forgotten a key."""
BUSY_FOR_S = 5


class Character(StrEnum):
    HONOURS_KEYS = "honours-keys"
    LOOKED_UP = "looked-up"
    NEITHER = "neither"
    NEVER_ANSWERS = "never-answers"  # applies the first send of a key and hangs up; can be looked up
    FORGETS_KEYS = "forgets-keys"
    LOOKS_UP_LATE = "looks-up-late"


class Ledger:
    """What was applied and what was refused once, durable."""

    def __init__(self, path: str) -> None:
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.execute("pragma journal_mode=wal")
        self._db.execute("create table if not exists applied (world, key, body, at)")
        self._db.execute("create table if not exists refused (world, key, primary key (world, key))")
        self.lock = threading.Lock()

    def apply(self, world: str, key: str, body: str, at: float) -> None:
        self._db.execute("insert into applied values (?, ?, ?, ?)", (world, key, body, at))

    def applied(self, world: str, key: str) -> list[tuple[str, float]]:
        found = self._db.execute("select body, at from applied where world = ? and key = ?", (world, key))
        return found.fetchall()

    def refuse_once(self, world: str, key: str) -> bool:
        done = self._db.execute("insert or ignore into refused values (?, ?)", (world, key))
        return done.rowcount == 1

    def receipts(self, world: str) -> dict[str, list[dict[str, str]]]:
        found: dict[str, list[dict[str, str]]] = {}
        for key, body in self._db.execute("select key, body from applied where world = ?", (world,)):
            found.setdefault(key, []).append(receipt(key, body))
        return found


def receipt(key: str, body: str) -> dict[str, str]:
    """Return what the provider answers: the same for the same key, so that runs can be compared."""
    return {"ref": f"ref-{key[-8:]}", "word": json.loads(body)["word"]}


class Handler(BaseHTTPRequestHandler):
    ledger: Ledger
    protocol_version = "HTTP/1.0"

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length", -1))
        data = self.rfile.read(max(0, size))
        if len(data) != size:
            return  # the client died while it sent
        character, world, key = self.path[1:].split("/")
        body, at = data.decode(), float(self.headers["At"])
        with self.ledger.lock:
            before = self.ledger.applied(world, key)
            if json.loads(body)["busy"] and not before and self.ledger.refuse_once(world, key):
                self._answer(429, {"retry_after": BUSY_FOR_S})
                return
            if not self._remembers(character, before, at):
                self.ledger.apply(world, key, body, at)
        if character != Character.NEVER_ANSWERS or before:
            self._answer(200, receipt(key, body))

    def do_GET(self) -> None:
        parts = self.path[1:].split("/")
        with self.ledger.lock:
            if len(parts) == 2:
                self._answer(200, self.ledger.receipts(parts[1]))
                return
            if len(parts) != 3 or "At" not in self.headers:
                return
            character, world, key = parts
            found = self.ledger.applied(world, key)
        shown_from = LATE_S if character == Character.LOOKS_UP_LATE else 0.0
        shown = [body for body, at in found if at + shown_from <= float(self.headers["At"])]
        self._answer(200 if shown else 404, receipt(key, shown[0]) if shown else {})

    def _remembers(self, character: str, before: list[tuple[str, float]], at: float) -> bool:
        if character == Character.HONOURS_KEYS:
            return bool(before)
        return character == Character.FORGETS_KEYS and any(at - then < MEMORY_S for _, then in before)

    def _answer(self, status: int, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        return None


class Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that died while it was answered."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def main() -> None:
    Handler.ledger = Ledger(sys.argv[1])
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
