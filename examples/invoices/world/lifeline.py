"""How a process of the world tells that it is ready, and when it stops.

A world process belongs to whoever started it: it ends on SIGTERM and when its standard input closes, which the
kernel does for it when the starter dies. The death of anybody else (the task under test) does not touch it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable


def announce(port: int) -> None:
    """Print the one line that says which port answers."""
    print(json.dumps({"port": port}), flush=True)


def stop_with_starter(stop: Callable[[], None]) -> None:
    """Call `stop` once, from a thread, on SIGTERM or when standard input closes."""
    ended = threading.Event()

    def wait() -> None:
        ended.wait()
        stop()

    def watch() -> None:
        while os.read(sys.stdin.fileno(), 4096):
            pass
        ended.set()

    signal.signal(signal.SIGTERM, lambda _number, _frame: ended.set())
    threading.Thread(target=wait, name="stop", daemon=True).start()
    threading.Thread(target=watch, name="starter", daemon=True).start()
