"""Starts processes that have imported everything already: one line of JSON in, one fork, one line of exit status out.

It never opens a store and never has a second thread, so each start is a new process that knows nothing of others.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any

import toy_plans


def start(order: dict[str, Any]) -> int:
    """Become the process of one start: its folder, its environment, its output."""
    os.chdir(order["folder"])
    os.environ.update(order["environ"])
    output = os.open("output", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    try:
        return toy_plans.start(order["flavour"], order["run_id"])
    except BaseException:
        traceback.print_exc()
        return 99


def main() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            status = start(order)
            sys.stderr.flush()
            os._exit(status)
        _, ended = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(ended), flush=True)


if __name__ == "__main__":
    main()
