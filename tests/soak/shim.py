"""Compiles `shim.c` and starts toy processes behind it. Used by the harnesses that count libc calls."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tally import Missing
from toy_world import HERE as CRASH
from toy_world import Starter

OURS = ("bodies", "clock", "told", "output", "points-", "/dev/null")
"""Pieces of the names of files that belong to the test, not to the run."""


def compiled(folder: Path) -> Path:
    """Compile the shim. Raises: Missing when there is no C compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise Missing("there is no C compiler")
    library = folder / "shim.so"
    source = Path(__file__).with_name("shim.c")
    subprocess.run(
        [compiler, "-O2", "-fPIC", "-shared", "-o", str(library), str(source), "-ldl", "-lpthread"], check=True
    )
    return library


class ShimmedStarter(Starter):
    """A warm process behind the shim, which sleeps until a start's environment arms it."""

    def __init__(self, library: Path) -> None:
        self.path = os.pathsep.join([str(CRASH), str(CRASH.parent), *filter(None, sys.path)])
        self._process = subprocess.Popen(
            [sys.executable, str(CRASH / "warm_start.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": self.path, "LD_PRELOAD": str(library)},
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self, order: dict[str, Any]) -> int:
        """Start as told; a start that is not over when the shim's alarm rings returns -SIGALRM."""
        return super().start({**order, "environ": {"SHIM_CLASSES": "", **order["environ"]}})


@dataclass(frozen=True)
class Call:
    """One recorded call: `data` are the bytes written or sent; `offset` is the new size of a truncation."""

    name: str
    result: int
    inode: int
    offset: int
    path: str
    path2: str
    data: bytes


def recorded(path: Path) -> list[Call]:
    """Read what the shim recorded."""
    calls: list[Call] = []
    data, start = path.read_bytes(), 0
    while start < len(data):
        end = data.index(b"\n", start)
        name, result, inode, offset, length, place, other = data[start:end].decode().split("\t")
        start = end + 1 + int(length)
        calls.append(Call(name, int(result), int(inode), int(offset), place, other, data[end + 1 : start]))
        start += 1
    return calls


def order(
    classes: str, *, at: int = 0, do: str = "", record: Path | None = None, skip: tuple[str, ...] = OURS
) -> dict[str, object]:
    """Return the environment that arms the shim."""
    return {
        "MILEPOST_CRASH_LOG": "",
        "SHIM_CLASSES": classes,
        "SHIM_SKIP": ":".join(skip),
        "SHIM_AT": at,
        "SHIM_DO": do,
        "SHIM_RECORD": record or "",
    }
