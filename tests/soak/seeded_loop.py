"""An event loop that chooses by seed what happens next: a ready handle, something from outside, or a timer.

Its time is virtual and it has no thread, so a seed is a schedule. It promises less than asyncio does: of what is
ready any may go first, not the oldest. Knows no run; the worlds of `async_worlds` put their I/O into it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import Any

OUTSIDE_SHARE = 0.4
"""How often something from outside arrives although something else is ready."""
TIMER_SHARE = 0.02
"""How often the next timer fires although something else could happen."""


class Stalled(Exception):
    """Nothing is ready, nothing is under way outside, no timer runs: this would hang for ever."""


class SeededLoop(asyncio.SelectorEventLoop):
    """One schedule. A seed of None is the schedule asyncio itself would choose, with everything outside in order."""

    _ready: Any  # asyncio's own deque of handles
    _scheduled: list[asyncio.TimerHandle]

    def __init__(self, seed: int | None) -> None:
        super().__init__()
        self._chance = None if seed is None else random.Random(seed)
        self._outside: list[Callable[[], None]] = []
        self._passed_s = 0.0
        self.set_exception_handler(lambda *_: None)  # what a dead process leaves behind complains to nobody
        self.choices = 0  # how often there was more than one way to go on

    def time(self) -> float:
        return self._passed_s

    def later(self, event: Callable[[], None]) -> None:
        """Let something happen outside, at a time that the seed chooses."""
        self._outside.append(event)

    async def outside(self) -> None:
        """Wait for one thing outside, such as an answer from a provider."""
        future: asyncio.Future[None] = self.create_future()
        self.later(lambda: None if future.done() else future.set_result(None))
        await future

    def _run_once(self) -> None:
        """Do one thing. Raises: Stalled."""
        self._let_arrive()
        held = self._hold_back()
        try:
            super()._run_once()  # type: ignore[misc]
        finally:
            self._ready.extendleft(reversed(held))

    def _let_arrive(self) -> None:
        while self._outside and (not self._ready or self._draw() < OUTSIDE_SHARE):
            self._outside.pop(self._pick(len(self._outside)))()
        timers = [timer for timer in self._scheduled if not timer.cancelled()]
        if timers and (not self._ready or self._draw() < TIMER_SHARE):
            self._passed_s = max(self._passed_s, min(timer.when() for timer in timers))
        elif not self._ready:
            raise Stalled

    def _hold_back(self) -> list[asyncio.Handle]:
        """Leave one handle ready; return the others."""
        if self._chance is None or len(self._ready) < 2:
            return []
        self._ready.rotate(-self._pick(len(self._ready)))
        held = list(self._ready)[1:]
        while len(self._ready) > 1:
            self._ready.pop()
        return held

    def _draw(self) -> float:
        return 1.0 if self._chance is None else self._chance.random()

    def _pick(self, count: int) -> int:
        if self._chance is None or count == 1:
            return 0
        self.choices += 1
        return self._chance.randrange(count)


class SeededPool(Executor):
    """Threads as a schedule sees them: work begins at one moment that the seed chooses, and ends at another."""

    def __init__(self, loop: SeededLoop) -> None:
        self._loop = loop

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def begin() -> None:
            if future.set_running_or_notify_cancel():
                self._loop.later(end)

        def end() -> None:
            try:
                future.set_result(work(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        self._loop.later(begin)
        return future


def run_seeded(loop: SeededLoop, main: Callable[[], Any]) -> Any:
    """Run a coroutine function to its end on a loop, and close the loop. Raises: Stalled."""
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(main())
    finally:
        _abandon(loop)
        asyncio.set_event_loop(None)


def _abandon(loop: SeededLoop) -> None:
    """Cancel what a dead process left behind, so that nothing of it is heard again."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    with suppress(Stalled, asyncio.CancelledError):
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    loop.close()
