"""Processes at their end: a forked child unwinds as its own process, a zombie is no living holder."""

from __future__ import annotations

import os
import subprocess
import sys

from milepost import step, task
from milepost.runtime.standing import _lives
from milepost.stores.memory import MemoryStore


def test_a_forked_child_that_exits_keeps_its_own_status() -> None:
    """Its end passes through our frames; neither status nor message may become something of the run's."""
    statuses: list[int] = []

    @step
    def forks() -> int:
        pid = os.fork()
        if pid == 0:
            sys.exit(3)
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        return 1

    @task
    def forking() -> int:
        return forks()

    parent = os.getpid()
    try:
        result = forking.options(store=MemoryStore()).run("r")
    except BaseException as error:
        if os.getpid() != parent:
            os._exit(error.code if isinstance(error, SystemExit) and isinstance(error.code, int) else 99)
        raise
    assert (result, statuses) == (1, [3])


def test_a_process_that_only_waits_to_be_reaped_does_not_live() -> None:
    """Else `runs` says that a dead run works, and `resume --all` passes it over."""
    child = subprocess.Popen([sys.executable, "-c", ""], stdin=subprocess.DEVNULL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    try:
        assert not _lives(child.pid)
        assert _lives(os.getpid())
    finally:
        child.wait()
