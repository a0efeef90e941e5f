"""One place to wait for a change in a run, for threads and for event loops alike."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio


class Bell:
    """Rung after every change; whoever waits looks again. Never rung from inside a signal handler."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    def ring(self) -> None:
        """Wake everybody who waits, in threads and on event loops, to look again."""
        with self._changed:
            self._changed.notify_all()
            waiting, self._waiting = self._waiting, []
        for loop, future in waiting:
            try:
                loop.call_soon_threadsafe(_wake, future)
            except RuntimeError:
                continue  # that loop is closed: nobody waits there any more

    def wait(self, ready: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """Block this thread until `ready()`; False when the time is over first."""
        with self._changed:
            return self._changed.wait_for(ready, timeout_s)

    async def wait_async(self, ready: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """As `wait`, without blocking the loop."""
        import asyncio  # who comes here has done so; a synchronous task needs none of it

        loop = asyncio.get_running_loop()
        deadline = None if timeout_s is None else loop.time() + timeout_s
        while True:
            future: asyncio.Future[None] = loop.create_future()
            with self._changed:
                self._waiting.append((loop, future))
            left = None if deadline is None else deadline - loop.time()
            is_ready = ready()
            if is_ready or (left is not None and left <= 0):
                self._forget(loop, future)
                return is_ready
            try:
                await asyncio.wait([future], timeout=left)
            finally:
                self._forget(loop, future)

    def _forget(self, loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
        with self._changed:
            if (loop, future) in self._waiting:
                self._waiting.remove((loop, future))


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
