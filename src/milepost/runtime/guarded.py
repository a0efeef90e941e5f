"""Whether this process is guarded, as it is from its first shadow run on; until then this costs next to nothing.

What the guard refuses is its own business. Called by `start` and `check`, which begin a run, by whatever begins and
ends a body, and by `api`.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from milepost.runtime.active import ActiveRun
from milepost.runtime.loading import load
from milepost.runtime.scope import Scope

if TYPE_CHECKING:
    from milepost.runtime.guard import Guard

_installed: Guard | None = None
_installing = threading.Lock()


def watch_over(run: ActiveRun) -> None:
    """See to it that a shadow run is guarded. One hook is enough for all: it finds the run in each scope."""
    global _installed
    with _installing:
        if _installed is None:
            load("milepost.runtime.guard")  # with sockets and all: for shadow runs only
            from milepost.runtime import guard, outward

            _installed = guard.Guard()
            outward.listen(_installed.heard)
            guard.follow_threads(_installed)
    _installed.begin(run)


def entered(scope: Scope) -> None:
    """Hear that a body begins in this thread: code that it runs there without its context is its code as well."""
    if _installed is not None:
        _installed.entered(scope)


def left(scope: Scope) -> None:
    """Hear that a body has ended in this thread."""
    if _installed is not None:
        _installed.left(scope)


def refuse_plain(name: str) -> None:
    """Refuse an effect's own function in a shadow run: nothing would keep it from sending. Raises: UndeclaredWrite."""
    if _installed is not None:
        _installed.refuse(f"sending {name}.plain(…)", sys._getframe(2))


def refuse_live(run_id: str) -> None:
    """Refuse to start a live run from inside of a shadow run: its effects would be sent. Raises: UndeclaredWrite."""
    if _installed is not None:
        from milepost.runtime.outward import caller

        _installed.refuse(f"starting the live run {run_id}", caller(sys._getframe(1)))
