"""Which processes are above this one, as far as the kernel tells. On Linux it says so in /proc, elsewhere not at all.

A PID namespace (a container) hides what is above its first process: whether something is there cannot be told from in
there, only when the namespace began. Called by `entitled`.
"""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from pathlib import Path

from milepost.records.times import parse_time
from milepost.runtime.clock import SystemClock

_MACHINES_OWN = {"pid": 0xEFFFFFFC, "uts": 0xEFFFFFFE}
"""The kernel's fixed numbers of the namespaces it starts with (PROC_PID_INIT_INO, PROC_UTS_INIT_INO)."""
_ANCESTORS_MAX = 1000
_WALKS_MAX = 10
"""Walks of which each may meet a process that ends just then."""


def ancestors() -> list[int] | None:
    """Return this process's parent, its parent, up to the first one of its PID namespace; None where /proc hides it."""
    if sys.platform != "linux":
        return []
    if not _shows_this_process():
        return None
    return next((found for _ in range(_WALKS_MAX) if (found := _walk()) is not None), None)


def in_own(namespace: str) -> bool:
    """Say whether this process is in a namespace ("pid", "uts") that is not the machine's own, as in a container."""
    try:
        return os.stat(f"/proc/self/ns/{namespace}").st_ino != _MACHINES_OWN[namespace]
    except OSError:
        return sys.platform == "linux"


def began_before(pid: int, at: str) -> bool:
    """Say whether a process lives, here, and began before a time (UTC ISO). Process 1 is as old as its namespace."""
    clock = SystemClock()
    try:
        age_s = clock.ticks() - int(_stat(pid)[19]) / os.sysconf("SC_CLK_TCK")
        return clock.now() - timedelta(seconds=age_s) < parse_time(at)
    except (OSError, ValueError, TypeError):
        return False  # nobody lives there, or that is no time


def _shows_this_process() -> bool:
    """Say whether /proc is the kernel's, and numbers processes as we do: it shows a file that we opened just now."""
    ours, other = os.pipe()
    try:
        return os.path.samestat(os.stat(f"/proc/{os.getpid()}/fd/{ours}"), os.fstat(ours))
    except OSError:
        return False
    finally:
        os.close(ours)
        os.close(other)


def _walk() -> list[int] | None:
    """Go up until there is no parent to be seen; None when one that is there cannot be read."""
    found: list[int] = []
    pid = os.getpid()
    while len(found) < _ANCESTORS_MAX:
        try:
            pid = int(_stat(pid)[1])
        except OSError:
            return None
        if pid == 0:
            return found
        found.append(pid)
    return None


def _stat(pid: int) -> list[str]:
    """Return what the kernel says of a process behind its name: state, parent, …; the 20th is when it began."""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    return text.rpartition(")")[2].split()
