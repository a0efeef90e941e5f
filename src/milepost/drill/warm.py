"""A warm process, `python -m milepost.drill.warm`: it has imported what every start needs, and forks one per order.

It never opens a store, never imports the user's modules and never has a second thread, so each start is a new process
that knows nothing of others. Orders come as lines of JSON, answers go out as lines of JSON. Started by `starter`.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import sysconfig
from contextlib import suppress
from typing import Any

from milepost.drill.child import BROKEN, carry_out
from milepost.drill.named import Named, load
from milepost.drill.order import Order

IMPORTED_FROM = tuple(os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "purelib", "platlib"))


class Warm:
    """The loop: forks, waits, ends worlds."""

    def __init__(self) -> None:
        self._kept: dict[int, int] = {}  # process that keeps a world -> our end of the pipe it waits on
        self._ended: dict[int, int] = {}

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Do one thing and return what is told of it."""
        what = asked.pop("ask")
        return getattr(self, f"_{what}")(**asked)  # type: ignore[no-any-return]

    def _start(self, order: dict[str, Any]) -> dict[str, Any]:
        sys.stdout.flush()
        if order["do"] == "keep":
            return self._keep(order)
        pid = os.fork()
        if pid == 0:
            self._become(order, -1, -1, ())
        return {"pid": pid}

    def _keep(self, order: dict[str, Any]) -> dict[str, Any]:
        """Start a process that keeps a world; answer when it is set up, or has ended."""
        ready, told = os.pipe()
        waits, over = os.pipe()
        pid = os.fork()
        if pid == 0:
            self._become(order, told, waits, (ready, over))
        os.close(told)
        os.close(waits)
        self._kept[pid] = over
        os.read(ready, 1)
        os.close(ready)
        return {"pid": pid}

    def _become(self, order: dict[str, Any], told: int, waits: int, ours: tuple[int, ...]) -> None:
        """Be the forked process; never returns."""
        status = BROKEN
        try:
            for descriptor in (*self._kept.values(), *ours):
                os.close(descriptor)
            status = carry_out(Order.of_json(order), told, waits)
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)

    def _wait(self, pid: int, stopped: bool = False) -> dict[str, Any]:
        """Wait until a process ended (or, with `stopped`, stopped)."""
        if pid not in self._ended:
            _, status = os.waitpid(pid, os.WUNTRACED if stopped else 0)
            if os.WIFSTOPPED(status):
                return {"stopped": True}
            self._ended[pid] = os.waitstatus_to_exitcode(status)
        return {"status": self._ended.pop(pid)}

    def _wait_any(self) -> dict[str, Any]:
        """Wait until some process ended or stopped; the status of one that ended is there to be waited for."""
        pid, status = os.waitpid(-1, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            return {"pid": pid, "stopped": True}
        self._ended[pid] = os.waitstatus_to_exitcode(status)
        return {"pid": pid, "stopped": False}

    def _end(self, pid: int) -> dict[str, Any]:
        """End a kept world and wait until it is torn down."""
        os.close(self._kept[pid])
        found = self._wait(pid)
        del self._kept[pid]  # its number is free again only now
        return found

    def _warm_up(self, modules: list[dict[str, str]]) -> dict[str, Any]:
        """Import what the user's modules import from elsewhere; a child that ends right away finds out what that is."""
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            _name_imports(modules, writing)
        os.close(writing)
        with open(reading, encoding="utf-8") as names:
            for name in names.read().split():
                with suppress(Exception):  # what cannot be imported here is imported, or fails, where it is needed
                    importlib.import_module(name)
        os.waitpid(pid, 0)
        return {}


def _name_imports(modules: list[dict[str, str]], writing: int) -> None:
    """Import the user's modules and write the names of what came from elsewhere; never returns."""
    try:
        before = set(sys.modules)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        with suppress(BaseException):  # it is told properly by the run that imports it
            for module in modules:
                load(Named(**module))
        for name in list(sys.modules):
            file = getattr(sys.modules[name], "__file__", None) or ""
            if name not in before and file.startswith(IMPORTED_FROM):
                os.write(writing, f"{name}\n".encode())
    finally:
        os._exit(0)


def main() -> None:
    """Answer until nobody asks any more."""
    warm = Warm()
    for line in sys.stdin:
        answer = warm.answer(json.loads(line))
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
