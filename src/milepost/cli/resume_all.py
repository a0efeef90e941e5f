"""`resume --all`: every run that can go on, one after another, each in a process of its own.

Two runs may come from two folders whose modules have the same names; only a process of its own keeps them apart.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from milepost.cli.carry_out import How
from milepost.cli.output import emit, note
from milepost.runtime.standing import unfinished
from milepost.stores.contract import Store
from milepost.views.opened import stands
from milepost.views.words import counted

_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def resume_all(store: Store, how: How) -> int:
    """Resume what died, was interrupted, is answered, due or cancelled; return the first status that is not 0."""
    rows = [row for row in unfinished(store) if stands(store, row).can_go_on]
    note(f"{counted(len(rows), 'run')} can go on.")
    statuses: list[int] = []
    told: list[object] = []
    for row in rows:
        status, output = _in_a_process(_arguments(row.run_id, how), capture=how.as_json)
        statuses.append(status)
        told.append(json.loads(output) if output.strip() else {"run_id": row.run_id, "exit_status": status})
        if status >= 128:
            break
    if how.as_json:
        emit({"runs": told})
    return next((status for status in statuses if status), 0)


def _arguments(run_id: str, how: How) -> list[str]:
    given = ["--json"] if how.as_json else []
    given += ["--plain"] if how.plain else []
    given += [] if how.wait else ["--no-wait"]
    return [sys.executable, "-m", "milepost", "resume", *given, "--", run_id]


def _in_a_process(arguments: list[str], *, capture: bool) -> tuple[int, str]:
    """Run one command in a group of its own, so that a signal reaches it once: through us."""
    output = subprocess.PIPE if capture else None
    command = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=output, text=True, process_group=0)
    with command as child, _forwarding(child):
        text, _ = child.communicate()
    return (child.returncode if child.returncode >= 0 else 128 - child.returncode), text or ""


@contextmanager
def _forwarding(child: subprocess.Popen[str]) -> Iterator[None]:
    def forward(number: int, frame: FrameType | None) -> None:
        child.send_signal(number)

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
