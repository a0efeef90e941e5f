"""Who belongs to no run: threads that were not given one, and child processes of a run. And who is an agent's process.

A child finds MILEPOST_RUN, which is set while a run is active here. A process that has worked on a run keeps a mark
for as long as it lives, which every process below it can see. Called by the lease keeper, `api` and `entitled`.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from milepost.errors import OutsideRun
from milepost.records.outside import variable

RUN_VARIABLE = "MILEPOST_RUN"
"""`PID RUN_ID` of the process and a run that is active in it."""
AGENT_VARIABLE = "MILEPOST_AGENT"
"""Names who or what runs a task here; without it, it is the task itself on this machine."""
_MARK = "milepost-agent"
"""Name of the open file that an agent's process keeps: the kernel shows it, and ends it with the process."""
_SET_CHILD_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of linux/prctl.h."""
_OPEN_FILES_MAX = 10_000
"""Open files of a process that are looked at for the mark."""
_before: str | None = None  # what this process found there: it may be a child itself
_mark: int | None = None
plays_both = False
"""Set by a drill, and in tests: its process works on runs, and makes the people up who answer them."""


def agent_of(environ: Mapping[str, str], task: str) -> str:
    """Return who or what runs a task: nobody by that name answers what it asks. Raises: BadOption."""
    return variable(environ, AGENT_VARIABLE) or f"agent:{task}@{platform.node()}"


def announce(run_id: str | None) -> None:
    """Tell child processes of a run that is active here; with none, put back what was there."""
    global _before
    found = os.environ.get(RUN_VARIABLE)
    if not _is_own(found):
        _before = found
    if run_id is not None:
        os.environ[RUN_VARIABLE] = f"{os.getpid()} {run_id}"
    elif _before is not None:
        os.environ[RUN_VARIABLE] = _before
    else:
        os.environ.pop(RUN_VARIABLE, None)


def mark() -> None:
    """Make this an agent's process until it exits, and so every process forked from it: nobody answers from there.

    A handler that runs at exit, or a thread that outlives the run, is not a person.
    """
    global _mark
    if _mark is None and not plays_both:
        _mark = os.memfd_create(_MARK) if hasattr(os, "memfd_create") else -1


def keep_orphans() -> None:
    """Let processes whose parent ends become children of this one, so that what a step leaves behind shows our mark.

    For a process of our own only: who embeds us may wait for children of its own. Linux; elsewhere nothing happens.
    """
    import ctypes  # only here: its import takes longer than the call

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def is_marked() -> bool:
    """Say whether this process has worked on a run, or was forked from one that has."""
    return _mark is not None


def shows_a_mark(pid: int) -> bool:
    """Say whether a process has worked on a run, or was started by one, as far as the kernel lets us look."""
    with suppress(OSError):
        if any(entry.startswith(f"{RUN_VARIABLE}=".encode()) for entry in _environ_of(pid)):
            return True
        with os.scandir(f"/proc/{pid}/fd") as found:
            return any(_is_mark(entry.path) for entry, _ in zip(found, range(_OPEN_FILES_MAX), strict=False))
    return False


def _is_mark(path: str) -> bool:
    try:
        return os.readlink(path).startswith(f"/memfd:{_MARK}")
    except OSError:
        return False  # closed since it was listed


def _environ_of(pid: int) -> list[bytes]:
    """Return the environment a process was started with, whatever it has made of it since."""
    return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")


def nobody_answers(why: str) -> dict[str, str]:
    """Return the environment of a child from which nobody answers a question: code of a task runs in it."""
    return {RUN_VARIABLE: f"{os.getpid()} {why}"}


def started_by_a_run() -> str | None:
    """Return the run that started this process, None when it was none."""
    found = os.environ.get(RUN_VARIABLE)
    return found.partition(" ")[2] if found and not _is_own(found) else None


def refuse_strangers(name: str, *, is_active: bool) -> None:
    """Refuse a call outside any run while one is active here or in the process that started this one.

    Raises: OutsideRun.
    """
    if is_active:
        raise OutsideRun(path=name, reason="a run is active in this process, but this thread does not belong to it")
    run_id = started_by_a_run()
    if run_id is not None:
        raise OutsideRun(path=name, reason=f"this process was started by run {run_id}, but does not belong to it")


def _is_own(found: str | None) -> bool:
    return found is not None and found.partition(" ")[0] == str(os.getpid())
