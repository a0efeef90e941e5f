"""The small HTTP server under the accounting queue and the model service.

It only knows routes that take a request and give an answer; what an answer means lives in the services.
Loopback only, one thread per connection, nothing printed.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from invoices.world.lifeline import announce, stop_with_starter

BODY_BYTES_MAX = 4 * 1024 * 1024
HELD_S_MAX = 600.0


@dataclass(frozen=True)
class Request:
    """One request as a route sees it; header names in lower case, the body decoded from JSON."""

    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True)
class Answer:
    """Status, JSON document and extra headers."""

    status: int
    document: Any
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Silence:
    """Carried out, but never answered: the connection is held open."""


@dataclass(frozen=True)
class Dropped:
    """Carried out, but the connection is closed without an answer."""


Reply = Answer | Silence | Dropped
Route = Callable[[Request], Reply]


class Service(ThreadingHTTPServer):
    """Routes by method and path, on a loopback port."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, port: int, routes: Mapping[tuple[str, str], Route]) -> None:
        self.routes = routes
        self.stopping = threading.Event()
        super().__init__(("127.0.0.1", port), _Handler)

    def serve_until_stopped(self) -> None:
        """Announce the port and answer until the starter goes away."""
        stop_with_starter(self._stop)
        announce(self.server_address[1])
        self.serve_forever(poll_interval=0.1)
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Let a client that went away go in silence; everything else is our mistake and goes to stderr."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]

    def _stop(self) -> None:
        self.stopping.set()
        self.shutdown()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Service

    def do_GET(self) -> None:
        self._handle("GET")

    def do_POST(self) -> None:
        self._handle("POST")

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: the ledger is what counts."""

    def _handle(self, method: str) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        try:
            body = self._read_body()
        except ValueError as error:
            self._write(Answer(400, {"error": f"expected a JSON body, found {error}"}))
            return
        route = self.server.routes.get((method, parts.path))
        if route is None:
            self._write(Answer(404, {"error": f"nothing answers {method} {parts.path}"}))
            return
        self._deliver(route(Request(query, {name.lower(): value for name, value in self.headers.items()}, body)))

    def _read_body(self) -> Any:
        length = int(self.headers.get("Content-Length") or 0)
        if not 0 <= length <= BODY_BYTES_MAX:
            self.close_connection = True
            raise ValueError(f"{length} bytes where at most {BODY_BYTES_MAX} are taken")
        return json.loads(self.rfile.read(length)) if length else None

    def _deliver(self, answer: Reply) -> None:
        if isinstance(answer, Answer):
            self._write(answer)
            return
        if isinstance(answer, Silence):
            self.server.stopping.wait(HELD_S_MAX)
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _write(self, answer: Answer) -> None:
        content = json.dumps(answer.document, sort_keys=True).encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
