"""The running event loop, told without importing asyncio: who runs no loop has not, and it is a third of our import.

Called by whatever synchronous and asynchronous code share; what only asynchronous code reaches imports asyncio.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the loop that runs in this thread; `get_running_loop` would raise without one, ten times as slowly."""
    running = getattr(sys.modules.get("asyncio"), "_get_running_loop", None)
    return running() if running is not None else None


def current_task() -> asyncio.Task[Any] | None:
    """Return the asyncio task that runs in this thread, None outside a loop."""
    loop = running_loop()
    return sys.modules["asyncio"].current_task(loop) if loop is not None else None
