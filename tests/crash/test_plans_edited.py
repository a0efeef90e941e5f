"""A plan that was killed in the middle of a send and edited before it is resumed: nothing goes out twice unasked.

Real processes, a real SIGKILL, and a provider of one file that can be looked up.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PLAN = """
import asyncio, os, signal
from datetime import timedelta
from pathlib import Path

from milepost import Found, Key, NotFound, effect, step, task

SENT = Path(__file__).with_name("sent")


def find(key: Key, name: str) -> Found[str] | NotFound:
    return Found(name) if f"{name} {key}" in SENT.read_text().splitlines() else NotFound()


@step
def names() -> list[str]:
    return ["ada", "bob", "cyd"]


@effect(key=lambda name: name, lookup=find, settle=timedelta(0))
def remind(key: Key, name: str) -> str:
    with SENT.open("a") as sent:
        sent.write(f"{name} {key}\\n")
    if os.environ.get("KILLED_AT") == name:
        os.kill(os.getpid(), signal.SIGKILL)
    return name


@step(key=lambda name: name)
def batch(name: str) -> str:
    return remind(name)

"""
PLANS = {
    "loop": """
@task
def remind_all() -> list[str]:
    return [batch(name) for name in names()]
""",
    "map": """
@task
def remind_all() -> list[str]:
    return batch.map(names(), concurrency=3)
""",
    "tasks": """
@task
async def remind_all() -> list[str]:
    async def one(name: str) -> str:
        return await batch.aio(name)

    return list(await asyncio.gather(*map(one, await names.aio())))
""",
}


def renamed(plan: str) -> str:
    return plan.replace("def remind(", "def mail(").replace("remind(name)", "mail(name)")


def keyed_anew(plan: str) -> str:
    return plan.replace("@effect(key=lambda name: name,", '@effect(key=lambda name: f"to-{name}",')


def moved_out(plan: str) -> str:
    """Call the effect without the step around it, under another key."""
    return keyed_anew(plan).replace("batch(name) for", "remind(name) for").replace("batch.", "remind.")


@pytest.fixture(params=list(PLANS))
def plan(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A plan in a file, whose run was killed while it sent to bob."""
    text = PLAN + PLANS[request.param]
    (tmp_path / "plan.py").write_text(text, encoding="utf-8")
    killed = milepost(tmp_path, "run", "plan.py:remind_all", "--run-id", "r", KILLED_AT="bob")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    return text


def milepost(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    state = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": os.pathsep.join(sys.path), **environ}
    command = [sys.executable, "-m", "milepost", *arguments]
    return subprocess.run(command, cwd=folder, env=state, capture_output=True, text=True, timeout=60, check=False)


def sent(folder: Path) -> list[str]:
    return [line.split()[0] for line in (folder / "sent").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("run", "edit"), [("r", renamed), ("r", keyed_anew), ("r", moved_out), ("fork", renamed), ("fork", moved_out)]
)
def test_a_send_under_another_name_is_asked_about(
    plan: str, run: str, edit: Callable[[str], str], tmp_path: Path
) -> None:
    """Whatever the shape, and in a fork from before it all: nothing was sent twice when the run asks."""
    (tmp_path / "plan.py").write_text(edit(plan), encoding="utf-8")
    if run == "fork":
        forked = milepost(tmp_path, "fork", "r", "--from", "names", "--run-id", run)
        assert forked.returncode == 0, forked.stderr
    asked = milepost(tmp_path, "resume", run, "--plain")
    assert asked.returncode == 4, asked.stdout + asked.stderr
    assert len(set(sent(tmp_path))) == len(sent(tmp_path))


@pytest.mark.parametrize("run", ["r", "fork"])
def test_a_plan_that_did_not_change_is_asked_nothing(plan: str, run: str, tmp_path: Path) -> None:
    if run == "fork":
        assert milepost(tmp_path, "fork", "r", "--from", "names", "--run-id", run).returncode == 0
    done = milepost(tmp_path, "resume", run, "--plain")
    assert done.returncode == 0, done.stderr
    assert sorted(sent(tmp_path)) == ["ada", "bob", "cyd"]
