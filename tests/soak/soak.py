"""The door of the harnesses: `python tests/soak/soak.py HARNESS [--seconds N] [--seed S] [--only POINT]`.

Without a harness it names them. Exit status 0 when nothing was broken, 1 when something was, 2 when this machine
lacks what the harness needs, 130 when it was stopped (Ctrl-C, SIGTERM): what it counted until then is kept.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import NoReturn, cast

HERE = Path(__file__).parent
ROOMS = [str(HERE), *(str(HERE.parent / room) for room in ("", "crash", "property", "../examples"))]
QUICK = "/dev/shm"
"""A file system in memory: a kill proves order, never fsync; what a power cut leaves is rebuilt from a trace."""
NAMES = (
    "crash_points",
    "syscalls",
    "call_faults",
    "demo_calls",
    "vfs",
    "power_cut",
    "ext4_cut",
    "resources",
    "clocks",
    "schedules",
    "machine",
    "starters",
    "zombies",
    "crashresume_bridge",
)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("harness", choices=NAMES)
    parser.add_argument("--seconds", type=float, default=60.0, help="stop drawing points after so many seconds")
    parser.add_argument("--seed", type=int, default=1, help="draws the order of the points")
    parser.add_argument("--only", help="try this one point")
    return parser.parse_args()


STOPPED = 130
STOPS = (signal.SIGINT, signal.SIGTERM)


def stop(number: int, frame: object) -> NoReturn:
    """Unwind at once; what comes after it, as from a parent that passes a Ctrl-C on, is the same wish."""
    for each in STOPS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def main() -> int:
    given = arguments()
    for each in STOPS:
        signal.signal(each, stop)
    try:
        return run(given)
    except KeyboardInterrupt:
        print(f"{given.harness}: stopped; what was counted is kept", file=sys.stderr)
        return STOPPED


def run(given: argparse.Namespace) -> int:
    """Run one harness; return the exit status it stands for."""
    sys.path[:0] = [room for room in ROOMS if room not in sys.path]
    from tally import Harness, Missing, tallied

    harness = cast(Harness, importlib.import_module(given.harness))
    with tempfile.TemporaryDirectory(prefix="soak-", dir=QUICK if os.path.isdir(QUICK) else None) as folder:
        os.environ["XDG_STATE_HOME"] = str(Path(folder, "state"))
        try:
            tally = tallied(
                harness, given.harness, Path(folder), seconds=given.seconds, seed=given.seed, only=given.only
            )
        except Missing as missing:
            print(f"{given.harness}: not tried, {missing}")
            return 2
    print(tally.line())
    return 0 if tally.clean else 1


if __name__ == "__main__":
    sys.exit(main())
