"""What a drill tells a process to do, and what that process told. Data only; passes between processes as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from milepost.drill.named import Named

RUN_ID = "drill"
KILLED = -9
STUCK = 98
"""Status of a process that did not end in time: not that of the kill which then ended it, nor of one on purpose."""


@dataclass(frozen=True, slots=True)
class Order:
    """One process: what it does (`run`, `observe`, `keep`), in which folder and environment, what befalls it."""

    do: str
    folder: str
    environ: Mapping[str, str]
    told: str  # file for what it has to tell
    output: str  # file for what the user's code prints
    task: Named | None = None
    inputs: str = "{}"  # JSON object, as the task's arguments are recorded
    function: Named | None = None  # observe, or setup
    teardown: Named | None = None
    clock: str | None = None  # file; None: real time
    sends: str | None = None  # file in which each send is noted
    fault: Mapping[str, str] | None = None  # {"kind", "path"}: what befalls the first send of an effect
    watch: str | None = None  # file in which side effects are noted
    own: tuple[str, ...] = ()  # folders in which writing is no side effect
    freeze: str | None = None  # a point at which the process stops itself (SIGSTOP); "first" is the first of any kind
    stop: str | None = None  # a point at which it dies with everything durable that was recorded
    versions: bool = False  # run with other versions than declared
    lease_s: float | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Order:
        """Read it where it is carried out."""
        names = {name: Named(**data[name]) for name in ("task", "function", "teardown") if data.get(name)}
        return cls(**{**data, **names})


@dataclass(frozen=True, slots=True)
class Told:
    """How a process ended: exit status (negative: the signal), and what it had to tell."""

    status: int
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def code(self) -> str:
        return str(self.data.get("code", ""))

    @property
    def said(self) -> str:
        """Say it in one line."""
        if self.data.get("message"):
            return f"{self.code}: {self.data['message']}"
        return f"killed by signal {-self.status}" if self.status < 0 else f"exit status {self.status}"


def read_told(path: Path, status: int) -> Told:
    try:
        return Told(status, json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError):
        return Told(status)


@dataclass(frozen=True, slots=True)
class Send:
    """One call of an effect's function, as the process that made it noted it right away."""

    path: str
    key: str
    outcome: str  # "returned" or "raised"
    looked_up: bool  # the effect has a lookup
    result: str | None = None  # JSON
    ref: str | None = None


def read_sends(path: Path) -> list[Send]:
    """Return every send of a world so far, in order."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [Send(**json.loads(line)) for line in lines]
