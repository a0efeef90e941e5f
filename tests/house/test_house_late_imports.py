"""What a run needs is imported with us, or where no signal is heard."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROBE = '''
import asyncio
import sys
import threading
from contextlib import suppress
from importlib.machinery import ModuleSpec

from milepost import step, task
from milepost.errors import NotPromoted


class Watching:
    """Is asked for each module that is not there yet, in the thread that imports it."""

    found: list[str] = []

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if threading.current_thread() is threading.main_thread():
            self.found.append(name)
        return None


@step
def one(x: int) -> int:
    return x


@task
def plan(x: int) -> int:
    return one(x) + sum(one.map([1, 2], concurrency=2))


@step
async def one_async(x: int) -> int:
    return x


@task(shadow_first=1)
def plan_first(x: int) -> int:
    return one(x)


@task
async def plan_async(x: int) -> int:
    return await one.aio(x) + sum(await one_async.map([1, 2], concurrency=2))


sys.meta_path.insert(0, Watching())
kind = sys.argv[1]
if kind == "async":
    asyncio.run(plan_async.run("r", 1))
    asyncio.run(plan_async.resume("r"))
elif kind == "live":
    with suppress(NotPromoted):
        plan_first.run("r", 1)
else:
    plan.options(shadow=kind == "shadow").run("r", 1)
    plan.resume("r")
print(Watching.found)
'''


@pytest.mark.parametrize("kind", ["sync", "async", "shadow", "live"])
def test_no_module_is_imported_in_the_main_thread_while_a_run_begins(kind: str, tmp_path: Path) -> None:
    """A signal handler that raises in an import leaves its lock taken, and other threads wait for it for ever."""
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    command = [sys.executable, "-c", PROBE, kind]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
