"""A small task with everything in it: checks, effects with every kind of doubt, waits, gates, hostile texts.

What goes wrong is chosen by environment variables, so that a resume of the same run can go right.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from milepost import Applied, Key, NotFound, Retry, effect, heartbeat, spent, step, task

HOSTILE = "\x1b[2J\x1b]0;owned\x07 \u202egnp.exe\nline two\x9b31m [bold]markup[/bold] >>>"


class Busy(Exception):
    retry_after = 3600


@dataclass
class Letter:
    name: str
    text: str


def has_letters(letters: list[Letter]) -> str | None:
    return None if letters else "there are no letters"


@step(verify=has_letters, next="Post the letters.", why="expensive")
def write(names: list[str]) -> list[Letter]:
    """Write the letters."""
    print("written to stdout by the plan")
    spent(input_tokens=1200, output_tokens=300, cost="0.0125")
    return [Letter(name, f"Dear {name}") for name in names]


def find(key: Key, letter: Letter) -> NotFound:
    return NotFound()


@effect(key=lambda letter: letter.name, lookup=find, settle=timedelta(0), permission="mail", next="Count them.")
def post(key: Key, letter: Letter) -> Applied[str]:
    """Post one letter."""
    with Path("posted.txt").open("a", encoding="utf-8") as book:
        book.write(f"{letter.name}\n")
    return Applied(f"posted to {letter.name}", ref=f"R-{letter.name}")


@effect(key=lambda word: word)
def shout(key: Key, word: str) -> str:
    """Shout a word; nobody can tell afterwards."""
    if os.environ.get("DIE_SHOUTING"):
        os.kill(os.getpid(), signal.SIGKILL)
    return word.upper()


@step(retry=Retry(on=Busy, attempts=5))
def count(letters: list[Letter]) -> int:
    if os.environ.get("BUSY"):
        raise Busy("come back later")
    heartbeat(len(letters), len(letters), "counted")
    return len(letters)


@task(permissions=["mail"], model="m-1", instructions="Be kind.")
def letters(names: list[str], shouted: str = "done") -> int:
    """Write and post letters."""
    written = write(names)
    post.map(written, concurrency=2)
    shout(shouted)
    if os.environ.get("FAIL_PLAN"):
        raise RuntimeError("the plan went wrong")
    return count(written)


@effect
def hush(key: Key) -> None:
    if os.environ.get("DIE_SHOUTING"):
        os.kill(os.getpid(), signal.SIGKILL)


@task
def mute() -> None:
    hush()


# ── hostile texts ──


@step(next=f"Do what it says: {HOSTILE}")
def nasty(text: str) -> str:
    heartbeat(1, 2, HOSTILE)
    return text + HOSTILE


@effect(key=lambda text: "one")
def nasty_post(key: Key, text: str) -> str:
    raise RuntimeError(f"refused: {HOSTILE}")


@task(name="hostile", permissions=["mail"])
def hostile(text: str) -> str:
    said = nasty(text)
    nasty_post(said)
    return said


# ── a gate: a body that says it runs and waits to be let go ──


@step
def gated(name: str) -> int:
    with Path(f"{name}.runs").open("w", encoding="utf-8") as ready:
        ready.write("here\n")
    with Path(f"{name}.go").open(encoding="utf-8") as gate:
        return len(gate.read())


@step
def after_gate(length: int) -> int:
    return length + 1


@task(name="gates")
def gates(name: str) -> int:
    return after_gate(gated(name))


@task(name="last_gate")
def last_gate(name: str) -> int:
    return gated(name)


@task(name="async_gates")
async def async_gates(name: str) -> int:
    return await after_gate.aio(await gated.aio(name))


@task(name="quiet")
async def quiet() -> None:
    """A task without steps and without a result."""
    print("on stdout", file=sys.stdout)


# ── an output that is no data ──


@step
def unwritten(name: str):  # type: ignore[no-untyped-def]  # without an annotation only JSON types pass
    return [name, {name}]


@task(name="unwritable")
def unwritable(name: str) -> int:
    return len(unwritten(name))


# ── ways out that are no exceptions ──


@step
def left(way: str) -> int:
    raise {"exit": SystemExit(0), "interrupt": KeyboardInterrupt(), "cancel": asyncio.CancelledError()}[way]


@task(name="leaving")
def leaving(way: str) -> int:
    return left(way)


@task(name="leaving_task")
async def leaving_task(way: str) -> int:
    async def leave() -> int:
        raise SystemExit(0)

    return await asyncio.create_task(leave())
