"""Hands what other threads have settled to an event loop: all of a commit with one wake-up.

Waking a loop is a system call, and one for each of two hundred runs was dearer than the commit they had shared.
Called by `adrive`; knows no run and no store.
"""

from __future__ import annotations

import asyncio
from collections import deque
from weakref import WeakKeyDictionary


class Postbox:
    """The settled promises of one loop that it has not heard of yet."""

    def __init__(self) -> None:
        # It holds no loop: as a value of `_BOXES` it would keep its own key alive.
        self._settled: deque[tuple[asyncio.Future[None], BaseException | None]] = deque()
        self._is_called = False

    def put(self, future: asyncio.Future[None], error: BaseException | None) -> None:
        """Settle a future of the loop, from any thread."""
        self._settled.append((future, error))
        if not self._is_called:
            self._is_called = True
            try:
                future.get_loop().call_soon_threadsafe(self._empty)
            except RuntimeError:  # that loop is closed: nobody waits there any more
                self._settled.clear()  # a future knows its loop, which would keep this box, and the run, for ever
                self._is_called = False

    def _empty(self) -> None:
        # First the mark: what is put from here on is taken below, or wakes the loop once more for nothing.
        self._is_called = False
        while self._settled:
            future, error = self._settled.popleft()
            if future.done():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)


_BOXES: WeakKeyDictionary[asyncio.AbstractEventLoop, Postbox] = WeakKeyDictionary()


def postbox(loop: asyncio.AbstractEventLoop) -> Postbox:
    """Return the postbox of a loop; called on that loop."""
    box = _BOXES.get(loop)
    if box is None:
        box = _BOXES[loop] = Postbox()
    return box
