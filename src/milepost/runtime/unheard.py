"""Failures of a body's calls that nobody was told of: a task in the background failed, and nobody awaited it.

asyncio marks an exception that nobody retrieved, for its own warning; that mark is read here. Should a later Python
name it otherwise, such a failure counts as heard. An error that ended a thread, as its own traceback says, was told to
nobody. What a pool's future holds is not known here. A signal is no failure: the run tells of it, and nobody else need.
Called by `scope`, and by the drivers.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator
from types import CellType, FrameType
from typing import TYPE_CHECKING, Any, TypeAlias

from milepost.errors import MilepostError, Signal
from milepost.runtime.loops import current_task, running_loop

if TYPE_CHECKING:
    import asyncio

Home: TypeAlias = "asyncio.Task[Any] | int"
"""Where a body's own line runs: a task, else a thread."""

TURNS = 10
"""Turns of a loop in which an error comes from one task to the next, through a group and a `.map`, twice over."""


class Unheard:
    """Failures that were raised away from a body's own line, and whoever may still hold one at its end."""

    __slots__ = ("_failed", "_holders", "_threads")

    def __init__(self) -> None:
        self._failed: set[object] = set()  # the paths that failed, as their errors name them
        self._holders: set[asyncio.Future[Any]] = set()
        self._threads: dict[threading.Thread, BaseException] = {}  # and the last error that left what they carry

    def failed(self, error: MilepostError, home: Home) -> None:
        """Remember a failure that is being raised here, and the tasks that may end with it."""
        self._failed.add(error.facts.get("path"))
        task = current_task()
        if task is None or task not in self._holders:
            self._holders -= {holder for holder in [*self._holders] if holder.done() and not _is_untaken(holder)}
            self._holders.update(_told_by(_under_way(home)))
        if task is not None:
            self._holders.update(_told_by([task]))

    def leaves(self, error: BaseException) -> None:
        """Remember an error with which this thread may end: it leaves the function that carries the run there."""
        if self._is_ours(error):
            self._threads[threading.current_thread()] = error

    async def arrive(self) -> None:
        """Let errors reach whoever awaits them: each turn of the loop one task nearer to the body's own line."""
        import asyncio

        quiet, under_way = 0, -1
        while quiet < TURNS:
            await asyncio.sleep(0)
            before, under_way = under_way, sum(not holder.done() for holder in [*self._holders])
            quiet = quiet + 1 if under_way == before else 0

    def take(self) -> BaseException | None:
        """Return the first failure that nobody took, as awaiting it would have raised it."""
        ended = next((error for error in [*self._threads.values()] if _came_out(error)), None)
        # looking takes it: asyncio warns of it no more, for it is told
        untaken = (holder for holder in [*self._holders] if holder.done() and _is_untaken(holder))
        return ended or next((e for h in untaken if self._is_ours(h._exception) and (e := h.exception())), None)

    def _is_ours(self, error: BaseException | None) -> bool:
        return any(isinstance(e, MilepostError) and e.facts.get("path") in self._failed for e in _within(error))


def _came_out(error: BaseException) -> bool:
    """Say whether an error ended a thread: it passed through all that a thread runs, up to what begins threads."""
    trace = error.__traceback__
    return trace is not None and trace.tb_frame.f_globals.get("__name__") == threading.__name__


def told_by_the_run(home: Home) -> None:
    """Keep asyncio from printing the signal that may end the task that runs here when nobody awaits it."""
    task = current_task()
    if task is not None and task is not home:
        task.add_done_callback(_take_signal)


def _take_signal(task: asyncio.Task[Any]) -> None:
    if isinstance(getattr(task, "_exception", None), Signal):
        task.exception()  # looking takes it, as above; whoever awaits the task is still told


def is_all_of_a_thread(caller: FrameType | None) -> bool:
    """Say whether what is called here is all that a thread does: nobody stands around it to catch what it raises."""
    while caller is not None and caller.f_globals.get("__name__") == threading.__name__:
        caller = caller.f_back
    return caller is None


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
