"""A real signal whose handler raises, at each place in turn where CPython hears signals in its main thread.

It hears them when a Python function begins and when a call of C is over: just there a profile function is called, which
raises the signal. (The third place, the end of a pass of a loop, has a call beside it in every loop of ours.)
"""

from __future__ import annotations

import inspect
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

PATIENCE_S = 20.0
EVERYWHERE = ("/milepost/", "/threading.py", "/contextlib.py")


class Interrupts:
    """Interrupts a piece of work at its n-th place; keeps what was raised, as a notebook keeps the last exception."""

    def __init__(self, *files: str, number: int = signal.SIGUSR1) -> None:
        self._files = files or EVERYWHERE
        self._number = number
        self.count = 0  # pieces of work that were interrupted
        self.where = "not yet"  # the last place; "" when the work had fewer
        self._raised: list[BaseException] = []
        self._left = 0

    def once_more(self, work: Callable[[], object]) -> bool:
        """Do a piece of work, interrupted one place later than the one before; False when it was not."""
        self._left = self.count = self.count + 1
        self.where = ""
        before = signal.signal(self._number, _raise)
        sys.setprofile(self._passes)
        try:
            work()
        except KeyboardInterrupt as raised:
            self._raised.append(raised)
        finally:
            sys.setprofile(None)
            signal.signal(self._number, before)
        return bool(self.where)

    def _passes(self, frame: FrameType, event: str, what: Any) -> None:
        code = frame.f_code
        begins = event == "call" and not code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE)
        if (begins or event == "c_return") and any(name in code.co_filename for name in self._files):
            self._left -= 1
            if self._left == 0:
                self.where = f"{code.co_filename}:{frame.f_lineno}, {event} {getattr(what, '__name__', '')}"
                signal.raise_signal(self._number)


def in_a_thread(work: Callable[[], object]) -> bool:
    """Do a piece of work in another thread; say whether it came to its end."""
    done: list[object] = []
    thread = threading.Thread(target=lambda: done.append(work()), daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    return bool(done)


def _raise(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
