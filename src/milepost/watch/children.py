"""The processes a watch starts, one for each run, and the signals it hears itself.

A child leads a group of its own, so that a signal reaches it once: through us.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from milepost.errors import UnavailableError

NO_ROOM = "Free memory, processes or file descriptors; the watch tries again by itself."
STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Children:
    """The runs under way here, by run id."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __len__(self) -> int:
        return len(self._processes)

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._processes

    def start(self, run_id: str) -> int:
        """Resume a run in a process of its own, whose output goes to our stderr; return its process id.

        Crash: it goes on without us, and whoever watches next finds the run worked on.
        Raises: UnavailableError when this machine has no room for another process.
        """
        command = [sys.executable, "-m", "milepost", "resume", "--no-wait", "--plain", "--", run_id]
        environ = {**os.environ, "MILEPOST_STORE": self._location}
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2, env=environ, process_group=0)
        except OSError as error:
            raise UnavailableError(reason=f"no process can be started: {error.strerror}", hint=NO_ROOM) from error
        self._processes[run_id] = process
        return process.pid

    def ended(self) -> list[tuple[str, int]]:
        """Return the runs whose process has ended since, each with its exit status: 128+n after a signal."""
        found = [(run_id, p.returncode) for run_id, p in self._processes.items() if p.poll() is not None]
        for run_id, _ in found:
            del self._processes[run_id]
        return [(run_id, code if code >= 0 else 128 - code) for run_id, code in found]

    def signal(self, number: int) -> None:
        """Pass a signal on to every child."""
        for process in self._processes.values():
            with suppress(ProcessLookupError):
                process.send_signal(number)


class Signals:
    """Wakes whoever sleeps here when a child ends or a stop is asked for, and remembers the stops."""

    def __init__(self) -> None:
        self._heard: list[int] = []
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)

    @contextmanager
    def heard_here(self) -> Iterator[None]:
        """Hear signals meanwhile; what is ignored on purpose (nohup) stays ignored."""
        numbers = [n for n in STOPPING if signal.getsignal(n) not in (signal.SIG_IGN, None)]
        before = {n: signal.signal(n, self._hear) for n in numbers}
        before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda number, frame: None)
        woken = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(woken)
            for number, handler in before.items():
                signal.signal(number, handler)
            self._reader.close()
            self._writer.close()

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._heard.append(number)

    def next_stop(self) -> int | None:
        """Return a stop that was asked for and not acted on yet."""
        return self._heard.pop(0) if self._heard else None

    def sleep(self, seconds: float) -> None:
        """Sleep so long, or until a signal comes."""
        ready, _, _ = select.select([self._reader], [], [], max(0.0, seconds))
        if ready:
            with suppress(BlockingIOError):
                self._reader.recv(4096)
