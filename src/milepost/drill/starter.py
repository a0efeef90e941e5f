"""The drill's end of a warm process: start, wait, end. One per worker; what does not end in time is killed."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from milepost.drill.named import Named
from milepost.drill.order import KILLED, Order

PATIENCE_S = 120.0
"""Seconds one process of a drill may take before it counts as stuck and is killed, unless said otherwise."""
CLOSE_S = 5.0
"""Seconds the warm process gets to end by itself."""
NOT_PASSED_ON = ("MILEPOST_", "PYTEST_CURRENT_TEST")


class Stuck(Exception):
    """A process did not end in time; it was killed."""


class Starter:
    """Forks processes that have imported everything but the user's own modules."""

    def __init__(self, modules: Sequence[Named], patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        path = os.pathsep.join(place or os.getcwd() for place in sys.path)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(NOT_PASSED_ON)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "milepost.drill.warm"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env={**kept, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
            start_new_session=True,  # Ctrl-C reaches the drill, which then ends this in order
        )
        self._unread = b""
        self._tell("warm_up", modules=[asdict(module) for module in modules])
        self._is_warm = False

    def start(self, order: Order) -> int:
        """Start a process; return its id."""
        return int(self._ask("start", order=order.to_json())["pid"])

    def wait(self, pid: int, *, stopped: bool = False) -> int:
        """Wait for the end of a process; return its exit status. With `stopped` a stop will do. Raises: Stuck."""
        answer = self._ask("wait", pid=pid, stopped=stopped, stuck=pid)
        return -signal.SIGSTOP if answer.get("stopped") else int(answer["status"])

    def wait_any(self) -> tuple[int, bool]:
        """Wait until some process ended or stopped; return which, and whether it stopped. Raises: Stuck."""
        answer = self._ask("wait_any")
        return int(answer["pid"]), bool(answer["stopped"])

    def end(self, pid: int) -> int:
        """End a kept world; return the exit status of the process that kept it. Raises: Stuck."""
        return int(self._ask("end", pid=pid, stuck=pid)["status"])

    def close(self) -> None:
        """End the warm process; worlds it kept are torn down, processes nobody waited for live on."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        try:
            self._process.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _tell(self, what: str, **facts: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"ask": what, **facts}).encode("utf-8") + b"\n")

    def _ask(self, what: str, stuck: int = 0, **facts: Any) -> dict[str, Any]:
        if not self._is_warm:
            self._answer()
            self._is_warm = True
        self._tell(what, **facts)
        try:
            return self._answer()
        except Stuck:
            if stuck:
                os.kill(stuck, -KILLED)
                self._answer()
            raise

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        while b"\n" not in self._unread:
            readable, _, _ = select.select([self._process.stdout], [], [], self._patience_s)
            if not readable:
                raise Stuck
            piece = os.read(self._process.stdout.fileno(), 65536)
            if not piece:
                raise RuntimeError("the drill's warm process ended; what it printed is on stderr")
            self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found
