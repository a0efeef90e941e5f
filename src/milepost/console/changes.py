"""Live updates: pages that are open are told that something in the store changed; they ask again by themselves.

One task looks once a second while anybody listens; what is sent never says what changed. Bounded in listeners.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from milepost.errors import MilepostError

LISTENERS_MAX = 32
"""Open pages that are told at once; a further one shows what it has until it is loaded again."""
LOOK_S = 1.0
"""Seconds between two looks at the store."""
ALIVE_S = 20.0
"""Seconds of silence after which a listener gets a line, so that one that went away is noticed."""


class Changes:
    """Looks at the store for everybody who listens."""

    def __init__(self, changed: Callable[[], object], *, look_s: float = LOOK_S) -> None:
        self._changed, self._look_s = changed, look_s
        self._listeners: set[asyncio.Event] = set()
        self._looking: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.is_ending = False

    @asynccontextmanager
    async def lifespan(self, app: object) -> AsyncIterator[None]:
        """Look while the app lives; wake everybody at its end so that it can end."""
        yield
        if self._looking is not None:
            self._looking.cancel()
        self.end()

    def end(self) -> None:
        """Let everybody who listens go; also from a signal's handler."""
        self.is_ending = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._tell)

    @property
    def is_full(self) -> bool:
        return len(self._listeners) >= LISTENERS_MAX

    async def told(self) -> AsyncIterator[bool]:
        """Yield True whenever something changed, False after a silence."""
        self._loop = asyncio.get_running_loop()
        event = asyncio.Event()
        self._listeners.add(event)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            while not self.is_ending:
                try:
                    async with asyncio.timeout(ALIVE_S):
                        await event.wait()
                    event.clear()
                    if not self.is_ending:
                        yield True
                except TimeoutError:
                    yield False
        finally:
            self._listeners.discard(event)

    async def _look(self) -> None:
        seen = await self._value()
        while self._listeners:
            await asyncio.sleep(self._look_s)
            found = await self._value()
            if found != seen:
                seen = found
                self._tell()

    async def _value(self) -> object:
        try:
            return await asyncio.to_thread(self._changed)
        except MilepostError:
            return None  # a busy or missing store is told by the page that asks for it

    def _tell(self) -> None:
        for event in self._listeners:
            event.set()


def stream(changes: Changes) -> Callable[[Request], Any]:
    """Return the handler of `/events`: server-sent events without content."""

    async def events(request: Request) -> Response:
        if changes.is_full:
            return PlainTextResponse("Too many pages are open; this one is not live.\n", 503)
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        return StreamingResponse(_lines(changes), media_type="text/event-stream")

    return events


async def _lines(changes: Changes) -> AsyncIterator[bytes]:
    yield b"retry: 3000\n\n"
    async for is_changed in changes.told():
        yield b"event: changed\ndata: 1\n\n" if is_changed else b": alive\n\n"
