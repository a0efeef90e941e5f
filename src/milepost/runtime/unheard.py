"""Failures of a body's calls that nobody was told of: a task in the background failed, and nobody awaited it.

asyncio marks an exception that nobody retrieved, for its own warning; that mark is read here. Should a later Python
name it otherwise, such a failure counts as heard. A thread of its own that ends with a failure tells nobody.
Called by `scope`, and by the drivers as a body ends.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from milepost.errors import MilepostError
from milepost.runtime.loops import current_task, running_loop

if TYPE_CHECKING:
    import asyncio

TURNS = 10
"""Turns of a loop in which an error comes from one task to the next, through a group and a `.map`, twice over."""


class Unheard:
    """Failures that were raised away from a body's own line, and whoever may still hold one at its end."""

    __slots__ = ("_failed", "_holders", "_lost")

    def __init__(self) -> None:
        self._failed: set[object] = set()  # the paths that failed, as their errors name them
        self._holders: set[asyncio.Future[Any]] = set()
        self._lost: BaseException | None = None

    def failed(self, error: MilepostError, home: object) -> None:
        """Remember a failure that is being raised here, and the tasks that may end with it."""
        self._failed.add(error.facts.get("path"))
        task = current_task()
        if task is None or task not in self._holders:
            self._holders = {holder for holder in self._holders if not holder.done() or _is_untaken(holder)}
            self._holders.update(holder for other in _under_way(home) for holder in _told_by(other))
        if task is not None:
            self._holders.update(_told_by(task))

    def lose(self, error: BaseException) -> None:
        """Remember that a thread of its own ends with an error: nobody waits for what it raises."""
        if self._is_ours(error):
            self._lost = self._lost or error

    async def arrive(self) -> None:
        """Let errors reach whoever awaits them: each turn of the loop one task nearer to the body's own line."""
        import asyncio

        quiet, under_way = 0, -1
        while quiet < TURNS:
            await asyncio.sleep(0)
            before, under_way = under_way, sum(not holder.done() for holder in self._holders)
            quiet = quiet + 1 if under_way == before else 0

    def take(self) -> BaseException | None:
        """Return the first failure that nobody took, as awaiting it would have raised it."""
        untaken = (holder for holder in self._holders if holder.done() and _is_untaken(holder))
        # looking takes it: asyncio warns of it no more, for it is told
        return self._lost or next((e for h in untaken if self._is_ours(h._exception) and (e := h.exception())), None)

    def _is_ours(self, error: BaseException | None) -> bool:
        return any(isinstance(e, MilepostError) and e.facts.get("path") in self._failed for e in _within(error, set()))


def ends_a_thread() -> bool:
    """Say whether what calls the caller of this is a thread's `run`: it passes errors on to nobody."""
    return sys._getframe(2).f_code is threading.Thread.run.__code__


def _under_way(home: object) -> set[asyncio.Task[Any]]:
    """Return the tasks of the loop that runs here, else of the one on which the body runs."""
    loop = running_loop() or (home.get_loop() if hasattr(home, "get_loop") else None)
    return sys.modules["asyncio"].all_tasks(loop) if loop is not None else set()


def _told_by(task: asyncio.Future[Any]) -> Iterator[asyncio.Future[Any]]:
    """Yield a task and what takes its error over without being a task: a `gather`, a `shield`."""
    yield task
    for callback, _ in getattr(task, "_callbacks", None) or ():
        for cell in getattr(callback, "__closure__", None) or ():
            if isinstance(cell.cell_contents, sys.modules["asyncio"].Future):
                yield from _told_by(cell.cell_contents)


def _is_untaken(holder: asyncio.Future[Any]) -> bool:
    return bool(getattr(holder, "_log_traceback", False))


def _within(error: BaseException | None, seen: set[int]) -> Iterator[BaseException]:
    """Yield an error, those of its group, and those it came from."""
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    yield error
    members = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    for inner in (*members, error.__cause__, error.__context__):
        yield from _within(inner, seen)
