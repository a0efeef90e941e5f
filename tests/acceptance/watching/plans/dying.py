"""Plans that end as a test wants: held at a gate, killed by themselves each time, asleep for a moment."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

from milepost import sleep, step, task


@step
def held(name: str) -> str:
    with Path(f"{name}.runs").open("w", encoding="utf-8") as ready:
        ready.write("here\n")
    with Path(f"{name}.go").open(encoding="utf-8") as go:
        go.read()
    return name


@step
def after(name: str) -> str:
    return f"after {name}"


@task
def gated(name: str = "gate") -> str:
    return after(held(name))


@task
def poisoned() -> None:
    sleep(timedelta(0))
    os._exit(9)


@task
def naps() -> str:
    sleep(timedelta(seconds=0.2))
    return "awake"
