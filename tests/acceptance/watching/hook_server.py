"""A webhook as a process of its own: writes what it gets to a file, and refuses as often as it is told to.

`python hook_server.py FILE REFUSALS`: prints its port, then serves until it is ended.
"""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Hook(BaseHTTPRequestHandler):
    """Takes POSTs; the first few are answered with 503."""

    received = Path()
    refusals = 0

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = 200
        if Hook.refusals > 0:
            Hook.refusals -= 1
            status = 503
        else:
            with Hook.received.open("ab") as file:
                file.write(body + b"\n")
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    Hook.received, Hook.refusals = Path(sys.argv[1]), int(sys.argv[2])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    print(server.server_address[1], flush=True)
    server.serve_forever()
