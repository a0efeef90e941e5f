"""Whose signals they are: ours while a run of the main thread is under way, the program's own before and after.

Only the main thread can set handlers, and hears. So its runs alone set ours and keep them; what is heard meanwhile
stops the runs of all threads. Takes no lock: a handler may come between any two lines. Called by the lease keeper.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeAlias

Handler: TypeAlias = Callable[[int, FrameType | None], Any] | int | None

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Hearing:
    """Our handlers for one time: from the first run that sets them until none of those is under way any more.

    A program may have kept one, to put it back or to call it from its own: when that time is over it passes on.
    """

    def __init__(self, tell: Callable[[tuple[Hearing, int]], None]) -> None:
        self._tell = tell
        self._runs: set[int] = set()
        self._theirs: dict[int, Handler] = {}
        self._set: set[int] = set()  # signals that are still to be given back
        self._told = 0  # the number of the first signal heard
        self._says_so = False

    @property
    def late(self) -> int:
        """Return the number of a signal that was heard and stopped none of the runs it was heard for; else 0."""
        return 0 if self._says_so else self._told

    @property
    def is_over(self) -> bool:
        """Say whether no run is under way that signals are heard for."""
        return not self._runs

    def begin(self, run: object) -> None:
        """Hear signals for a run. In the main thread, as `give_back`."""
        self._runs.add(id(run))
        for number in SIGNALS:
            theirs = signal.getsignal(number)
            # nohup and background jobs ignore it, an embedding program may handle it outside Python: leave it so
            if number not in self._theirs and theirs not in (signal.SIG_IGN, None):
                self._theirs[number] = theirs
                self._set.add(number)  # first: whatever comes between, it is given back
                signal.signal(number, self._hear)

    def end(self, run: object, *, was_stopped: bool) -> None:
        """Let a run go, begun here or not, in any thread; `was_stopped`: its caller hears of the signal from it."""
        if id(run) in self._runs:
            self._says_so = self._says_so or was_stopped
            self._runs.discard(id(run))

    def end_all(self) -> None:
        """In a forked child: let the runs of its parent go."""
        self._runs.clear()
        self.give_back()

    def give_back(self) -> None:
        """Let each signal mean what it meant before; what the program has set meanwhile stays."""
        for number in list(self._set):
            if self._is_ours(number):
                signal.signal(number, self._theirs[number])
            self._set.discard(number)

    def _is_ours(self, number: int) -> bool:
        found = signal.getsignal(number)
        return found == self._hear or (self._told != 0 and found == signal.SIG_DFL)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        """First: stop at the next boundary. Second: stop at once, no worse than SIGKILL. Afterwards: the program's."""
        if self.is_over:
            self.give_back()
            self._pass_on(number, frame)
        elif self._told:
            _end_process(number)
        else:
            self._told = number
            for known in filter(self._is_ours, self._set):
                signal.signal(known, signal.SIG_DFL)
            self._tell((self, number))

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        theirs = self._theirs.get(number)
        if callable(theirs):
            theirs(number, frame)
        else:
            _end_process(number)


def pass_on_late(number: int) -> None:
    """Let a signal that came too late for the runs it was heard for mean to the program what it means to it now.

    asyncio, whose handler does nothing, was woken by the signal itself when it came.
    """
    theirs = signal.getsignal(number)
    if callable(theirs):
        theirs(number, sys._getframe())
    elif theirs == signal.SIG_DFL:
        _end_process(number)


def _end_process(number: int) -> None:
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
