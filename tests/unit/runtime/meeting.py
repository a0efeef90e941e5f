"""How a test's branches meet, and the ways in which a call is cancelled while it is under way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable


class OtherError(Exception):
    """What a sibling raises."""


class Meeting:
    """Two branches that wait for each other, on whatever loop they run."""

    def __init__(self) -> None:
        self.began, self.go_on = threading.Event(), threading.Event()
        self.ran: list[str] = []

    async def has_begun(self) -> None:
        while not self.began.is_set():
            await asyncio.sleep(0)

    async def may_go_on(self) -> None:
        while not self.go_on.is_set():
            await asyncio.sleep(0)


async def by_timeout(call: Awaitable[int], meeting: Meeting) -> str:
    async def expire(deadline: asyncio.Timeout) -> None:
        await meeting.has_begun()
        deadline.reschedule(0)

    try:
        async with asyncio.timeout(None) as deadline:
            expiring = asyncio.ensure_future(expire(deadline))
            await call
    except TimeoutError:
        await expiring
        return "given up"
    return "finished"


async def by_cancel(call: Awaitable[int], meeting: Meeting) -> str:
    task = asyncio.ensure_future(call)
    await meeting.has_begun()
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return "given up"
    return "finished"


async def by_cancelled_gather(call: Awaitable[int], meeting: Meeting) -> str:
    both = asyncio.gather(call)
    await meeting.has_begun()
    both.cancel()
    try:
        await both
    except asyncio.CancelledError:
        return "given up"
    return "finished"


BY = [by_timeout, by_cancel, by_cancelled_gather]
