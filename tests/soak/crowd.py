"""Starts many processes of one run at one moment: each is forked, waits behind a barrier, and all are let go at once.

As a program it is the warm process, which has imported everything and never opens a store; `Crowd` talks to it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from toy_world import HERE as CRASH
from toy_world import Starter
from warm_start import start


class Crowd(Starter):
    """A warm process that forks as many processes as it is given orders, and lets them go together."""

    def __init__(self) -> None:
        here = Path(__file__)
        self.path = os.pathsep.join([str(here.parent), str(CRASH), str(CRASH.parent), *filter(None, sys.path)])
        self._process = subprocess.Popen(
            [sys.executable, str(here)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": self.path},
        )

    def start(self, order: dict[str, Any]) -> int:
        return self.together([order])[0]

    def together(self, orders: list[dict[str, Any]]) -> list[int]:
        """Start one process per order at one moment; return their exit statuses when all have ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(orders) + "\n")
        self._process.stdin.flush()
        statuses: list[int] = json.loads(self._process.stdout.readline())
        return statuses


def fork_behind(barrier: tuple[int, int], order: dict[str, Any]) -> int:
    """Fork a process that waits until nobody holds the barrier's writing end; return its pid."""
    pid = os.fork()
    if pid:
        return pid
    reading, writing = barrier
    os.close(writing)
    os.read(reading, 1)
    os.close(reading)
    status = start(order)
    sys.stderr.flush()
    os._exit(status)


def let_go_together(orders: list[dict[str, Any]]) -> list[int]:
    barrier = os.pipe()
    pids = [fork_behind(barrier, order) for order in orders]
    for end in barrier:
        os.close(end)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(let_go_together(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
