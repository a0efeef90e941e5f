"""Cancellation in asyncio, in one place: work under way is never torn, whoever cancels (design §5).

Work runs in an asyncio task of its own. A TaskGroup that gives up because a sibling failed does not reach it, any
other cancellation is passed on; either way the caller goes on only when the work has ended. Called by `adrive`,
`map` and `start`. Knows no step and no run.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator
from types import FrameType
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
    task = asyncio.get_running_loop().create_task(_ended(work))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await _over(task)
        except asyncio.CancelledError as error:
            cancelled = error
            cancel(task, not _a_group_gives_up(named_by))
    ended = Ended(error=asyncio.CancelledError()) if task.cancelled() else task.result()
    if cancelled is not None and not isinstance(ended.error, Signal):
        raise cancelled
    if ended.error is not None:
        raise ended.error
    return ended.value  # type: ignore[return-value]  # what `work` returned


async def _over(task: asyncio.Task[Any]) -> None:
    """Return when a task is over; cancelled, leave it alone. `asyncio.wait` takes three times as long for it."""
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def tell(_: object) -> None:
        if not over.done():
            over.set_result(None)

    task.add_done_callback(tell)
    try:
        await over
    except asyncio.CancelledError:
        task.remove_done_callback(tell)
        raise


async def _ended(work: Coroutine[Any, Any, object]) -> Ended:
    """Return how work ended. Raising would end the loop on SystemExit, and log what nobody asked for."""
    try:
        return Ended(await work)
    except BaseException as error:  # noqa: BLE001 – raised again in the task that waits for it
        return Ended(error=error)


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
