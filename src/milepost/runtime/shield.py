"""Cancellation in asyncio, in one place: work under way is never torn, whoever cancels (design §5).

Work runs in an asyncio task of its own. A TaskGroup that gives up because a sibling failed does not reach it, any
other cancellation is passed on; either way the caller goes on only when the work has ended. Called by `adrive`,
`map` and `start`. Knows no step and no run.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Generator, Iterator
from types import FrameType, coroutine
from typing import Any, TypeVar

from milepost.errors import Signal
from milepost.protocol.ops import Ended

T = TypeVar("T")


async def outlive(
    work: Coroutine[Any, Any, T],
    cancel: Callable[[asyncio.Task[Any], bool], object],
    named_by: asyncio.Task[Any] | None,
) -> T:
    """Wait for work to its end, however often this task is cancelled meanwhile; return its value or raise its error.

    `cancel` hears of each cancellation, with the work's task and whether it is to be passed on to it; `named_by` is
    the task that called for the work, maybe through a `gather`.
    Cancelled, the caller hears of the cancellation, unless the work ended in a signal: that goes before all else.
    """
    loop = asyncio.get_running_loop()
    under_way = _Work(loop.create_future())
    task = loop.create_task(under_way.begun(work))
    cancelled: asyncio.CancelledError | None = None
    while under_way.ended is None:
        try:
            await under_way.over
        except asyncio.CancelledError as error:
            cancelled = error
            under_way.over = loop.create_future()
            cancel(task, not _a_group_gives_up(named_by))
    ended = under_way.ended
    if cancelled is not None and not isinstance(ended.error, Signal):
        raise cancelled
    if ended.error is not None:
        raise ended.error
    return ended.value  # type: ignore[return-value]  # what `work` returned


class _Work:
    """Work under way in a task of its own; it tells itself that it is over, two turns of the loop before a callback."""

    __slots__ = ("ended", "over")

    def __init__(self, over: asyncio.Future[None]) -> None:
        self.over = over  # another one after each cancellation, which took the last with it
        self.ended: Ended | None = None

    def begun(self, work: Coroutine[Any, Any, object]) -> Coroutine[Any, Any, None]:
        """Return what a task carries out: it has begun, so that it tells its end even if it is cancelled at once."""
        carried = self._carried_out(work)
        carried.send(None)
        return carried

    async def _carried_out(self, work: Coroutine[Any, Any, object]) -> None:
        """Keep how work ended. Raising would end the loop on SystemExit, and log what nobody asked for."""
        try:
            await _pause()
            self.ended = Ended(await work)
        except BaseException as error:  # noqa: BLE001 – raised again in the task that waits for it
            work.close()  # it was cancelled before it began, or it is over
            self.ended = Ended(error=error)
        if not (self.over.done() or self.over.get_loop().is_closed()):  # closed: nobody waits there any more
            self.over.set_result(None)


@coroutine
def _pause() -> Generator[None, None, None]:
    yield


# ── who cancels ─────────────────────────────────────────────────────────────────────────────────────
# asyncio does not say who cancels a task, so the marks a TaskGroup leaves are read. Should a later Python name
# them otherwise, a group's cancellation counts as any other one: a start is lost, nothing is wrong.


def _a_group_gives_up(named_by: asyncio.Task[Any] | None) -> bool:
    """Say whether this task is cancelled because a child of a TaskGroup failed: it waits in the group, or is in it."""
    this = asyncio.current_task()
    assert this is not None
    return _is_given_up(this) or (named_by not in (None, this) and _is_given_up(named_by)) or _opened_failed_group(this)


def _is_given_up(task: Any) -> bool:
    for callback, _ in getattr(task, "_callbacks", None) or ():
        group = getattr(callback, "__self__", None)
        if isinstance(group, asyncio.TaskGroup) and getattr(group, "_aborting", False):
            return _has_failed(group) or _is_given_up(getattr(group, "_parent_task", None))
    return False


def _has_failed(group: asyncio.TaskGroup) -> bool:
    return bool(getattr(group, "_errors", None))


def _opened_failed_group(task: asyncio.Task[Any]) -> bool:
    """Say whether the code that waits here stands in the `async with` of a TaskGroup of which a child failed."""
    groups = (v for frame in _frames() for v in frame.f_locals.values() if isinstance(v, asyncio.TaskGroup))
    return any(_has_failed(group) and getattr(group, "_parent_task", None) is task for group in groups)


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back
