"""One place to wait for a change in a run, for threads and for event loops alike."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import asyncio

LOOK_S = 1.0
"""Longest wait before one looks again unrung: whoever was to ring may have been interrupted."""

Wake: TypeAlias = Callable[[], object]


class Bell:
    """Rung after every change; whoever waits looks again. Never rung from inside a signal handler."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Wake] = []

    def ring(self) -> None:
        """Wake everybody who waits, in threads and on event loops, to look again."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for wake in waiting:
            with suppress(RuntimeError):  # that loop is closed: nobody waits there any more
                wake()

    def wait(self, ready: Callable[[], bool], timeout_s: float = float("inf")) -> bool:
        """Block this thread until `ready()`; False when the time is over first."""
        deadline = time.monotonic() + timeout_s
        while True:
            gate = threading.Lock()
            gate.acquire()
            self._hear(gate.release)
            try:
                left = deadline - time.monotonic()
                if (is_ready := ready()) or left <= 0:
                    return is_ready
                gate.acquire(timeout=min(left, LOOK_S))
            finally:
                self._forget(gate.release)

    async def wait_async(self, ready: Callable[[], bool], timeout_s: float = float("inf")) -> bool:
        """As `wait`, without blocking the loop."""
        import asyncio  # who comes here has done so; a synchronous task needs none of it

        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while True:
            future: asyncio.Future[None] = loop.create_future()
            wake = partial(loop.call_soon_threadsafe, _settle, future)
            self._hear(wake)
            try:
                left = deadline - loop.time()
                if (is_ready := ready()) or left <= 0:
                    return is_ready
                await asyncio.wait([future], timeout=min(left, LOOK_S))
            finally:
                self._forget(wake)

    def _hear(self, wake: Wake) -> None:
        with self._lock:
            self._waiting.append(wake)

    def _forget(self, wake: Wake) -> None:
        with self._lock:
            if wake in self._waiting:
                self._waiting.remove(wake)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
