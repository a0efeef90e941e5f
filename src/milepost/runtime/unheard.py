"""Failures of a body's calls that nobody was told of: a task in the background failed, and nobody awaited it.

asyncio marks an exception that nobody retrieved, for its own warning; that mark is read here. Should a later Python
name it otherwise, such a failure counts as heard. An error that came out of a thread, as its own traceback says, was
told to nobody. What a pool's future holds is not known here. Called by `scope`, and by the drivers as a body ends.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator
from traceback import walk_stack
from types import CellType
from typing import TYPE_CHECKING, Any, TypeAlias

from milepost.errors import MilepostError
from milepost.runtime.loops import current_task, running_loop

if TYPE_CHECKING:
    import asyncio

Home: TypeAlias = "asyncio.Task[Any] | int"
"""Where a body's own line runs: a task, else a thread."""

TURNS = 10
"""Turns of a loop in which an error comes from one task to the next, through a group and a `.map`, twice over."""

DYING_S = 0.3
"""Seconds that a body, at its end, leaves a thread in which a call failed to end with it; later it has caught it."""

POOLS = ("concurrent.futures.thread", "multiprocessing.pool")


class Unheard:
    """Failures that were raised away from a body's own line, and whoever may still hold one at its end."""

    __slots__ = ("_failed", "_holders", "_threads")

    def __init__(self) -> None:
        self._failed: set[object] = set()  # the paths that failed, as their errors name them
        self._holders: set[asyncio.Future[Any]] = set()
        self._threads: dict[threading.Thread, BaseException] = {}  # and the last error seen there

    def failed(self, error: MilepostError, home: Home, told_in: threading.Thread | None) -> None:
        """Remember a failure that is being raised here, and the tasks or the thread that may end with it."""
        self._failed.add(error.facts.get("path"))
        task = current_task()
        self.leaves(error, home, told_in)
        if task is None or task not in self._holders:
            self._holders -= {holder for holder in [*self._holders] if holder.done() and not _is_untaken(holder)}
            self._holders.update(_told_by(_under_way(home)))
        if task is not None:
            self._holders.update(_told_by([task]))

    def leaves(self, error: BaseException, home: Home, told_in: threading.Thread | None = None) -> None:
        """Remember an error that a thread may end with, this one or that of a `.map`. One of a pool does not."""
        thread = told_in or (threading.current_thread() if not _is_a_pools() else None)
        if thread is not None and not _holds(thread, home) and self._is_ours(error):
            self._let_go([other for other in [*self._threads] if not other.is_alive()])
            self._threads[thread] = error

    def join(self) -> None:
        """Let threads end in which a call failed, in the thread of the body or in one that waits for it."""
        until = time.monotonic() + DYING_S
        threads = [thread for thread in [*self._threads] if thread is not threading.current_thread()]
        while any(map(self._may_end, threads)) and time.monotonic() < until:
            time.sleep(0.001)
        self._let_go(threads)

    def _may_end(self, thread: threading.Thread) -> bool:
        error = self._threads.get(thread)
        return error is not None and thread.is_alive() and not _came_out(error)

    def _let_go(self, threads: list[threading.Thread]) -> None:
        """Forget threads that have caught what they were told of."""
        for thread in threads:
            error = self._threads.get(thread)
            if error is not None and not _came_out(error):
                self._threads.pop(thread, None)

    async def arrive(self) -> None:
        """Let errors reach whoever awaits them: each turn of the loop one task nearer to the body's own line."""
        import asyncio

        if any(map(self._may_end, [*self._threads])):
            await asyncio.to_thread(self.join)
        quiet, under_way = 0, -1
        while quiet < TURNS:
            await asyncio.sleep(0)
            before, under_way = under_way, sum(not holder.done() for holder in [*self._holders])
            quiet = quiet + 1 if under_way == before else 0

    def take(self) -> BaseException | None:
        """Return the first failure that nobody took, as awaiting it would have raised it."""
        ended = next((error for error in [*self._threads.values()] if _came_out(error)), None)
        if ended is not None:
            return ended
        # looking takes it: asyncio warns of it no more, for it is told
        untaken = (holder for holder in [*self._holders] if holder.done() and _is_untaken(holder))
        return next((e for h in untaken if self._is_ours(h._exception) and (e := h.exception())), None)

    def _is_ours(self, error: BaseException | None) -> bool:
        return any(isinstance(e, MilepostError) and e.facts.get("path") in self._failed for e in _within(error))


def _is_a_pools() -> bool:
    return any(frame.f_globals.get("__name__") in POOLS for frame, _ in walk_stack(None))


def _holds(thread: threading.Thread, home: Home) -> bool:
    """Say whether this is the thread of a body's own line."""
    if isinstance(home, int):
        return thread.ident == home
    return thread is threading.current_thread() and running_loop() is home.get_loop()


def _came_out(error: BaseException) -> bool:
    """Say whether an error ended a thread: it went through all frames but those that begin every thread."""
    trace = error.__traceback__
    frames = walk_stack(trace.tb_frame) if trace is not None else ()
    return trace is not None and all(frame.f_globals.get("__name__") == threading.__name__ for frame, _ in frames)


def _under_way(home: Home) -> set[asyncio.Task[Any]]:
    """Return the tasks of the loop that runs here, else of the one on which the body runs."""
    loop = running_loop() or (home.get_loop() if not isinstance(home, int) else None)
    return sys.modules["asyncio"].all_tasks(loop) if loop is not None else set()


def _told_by(tasks: Iterable[asyncio.Future[Any]]) -> set[asyncio.Future[Any]]:
    """Return tasks and what takes their errors over without being a task: a `gather`, a `shield`."""
    found: set[asyncio.Future[Any]] = set()
    left = [*tasks]
    while left:
        task = left.pop()
        if task in found:
            continue  # a shield knows what it shields
        found.add(task)
        for callback, _ in getattr(task, "_callbacks", None) or ():
            cells = getattr(callback, "__closure__", None) or ()
            left += [held for cell in cells if isinstance(held := _content(cell), sys.modules["asyncio"].Future)]
    return found


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # of a name that has no value yet
        return None


def _is_untaken(holder: asyncio.Future[Any]) -> bool:
    return bool(getattr(holder, "_log_traceback", False))


def _within(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, those of its group, and those it came from."""
    seen: set[int] = set()
    left = [error]
    while left:
        error = left.pop()
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        yield error
        left += [error.__cause__, error.__context__]
        left += error.exceptions if isinstance(error, BaseExceptionGroup) else ()
