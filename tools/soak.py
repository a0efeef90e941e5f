"""Runs every harness of `tests/soak` in turn within a time: `make soak SECONDS=600 [SEED=7]`.

Each gets its share of the seconds; its line goes to the file that MILEPOST_SOAK_RESULTS names. Exit status 1 when a
harness found something broken; what it printed says how to try that one point again. Stopped (Ctrl-C, SIGTERM), it
keeps what was counted until then: exit status 130.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from enum import IntEnum
from pathlib import Path

from results import ROOT, VARIABLE, note

SOAK = ROOT / "tests" / "soak"
LEAVING_S = 600.0
"""Seconds a harness may take beyond its share to make its references and to finish its last point."""


class Ended(IntEnum):
    """What the exit status of a harness means."""

    CLEAN = 0
    BROKEN = 1
    NOT_TRIED = 2  # this machine lacks what it needs
    STOPPED = 130  # somebody ended it


def harnesses() -> list[str]:
    """Return the harnesses there are: the files of `tests/soak` that say what they count."""
    return sorted(path.stem for path in SOAK.glob("*.py") if "KIND" in _given_names(path))


def _given_names(path: Path) -> set[str]:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    targets = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def run(name: str, seconds: float, seed: int) -> Ended:
    """Run one harness and keep its lines."""
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        lines = Path(folder, "lines")
        command = [sys.executable, "tests/soak/soak.py", name, "--seconds", f"{seconds:.0f}", "--seed", str(seed)]
        environ = {**os.environ, VARIABLE: str(lines), "PYTHONPATH": str(ROOT / "src")}
        status = _status(command, environ, seconds + LEAVING_S)
        for line in lines.read_text(encoding="utf-8").splitlines() if lines.exists() else ():
            note(json.loads(line))
    return Ended(status) if status in tuple(Ended) else Ended.BROKEN


def _status(command: Sequence[str], environ: Mapping[str, str], seconds_max: float) -> int:
    """Return how a harness ended: one that hangs is killed and counts as broken; a wish to stop is passed on."""
    with subprocess.Popen(command, cwd=ROOT, env=environ) as process:
        try:
            return process.wait(seconds_max)
        except subprocess.TimeoutExpired:
            print(f"hangs: it was ended after {seconds_max:.0f} s: {' '.join(command[1:])}", file=sys.stderr)
            process.kill()
            return Ended.BROKEN
        except KeyboardInterrupt:
            process.terminate()
            process.wait()
            return Ended.STOPPED


def run_all(names: Sequence[str], seconds: float, seed: int) -> dict[str, Ended]:
    """Run harnesses one after the other, each for its share of the seconds, until somebody stops them."""
    found: dict[str, Ended] = {}
    for name in names:
        found[name] = run(name, seconds / len(names), seed)
        if found[name] is Ended.STOPPED:
            break
    return found


def main() -> int:
    known = harnesses()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300.0, help="in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", choices=known, help="may be given more than once")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    found = run_all(given.only or known, given.seconds, given.seed)
    for ended in Ended:
        names = [name for name, its in found.items() if its is ended]
        if names:
            print(f"{ended.name.lower().replace('_', ' ')}: {', '.join(names)}")
    if Ended.STOPPED in found.values():
        return Ended.STOPPED
    return int(Ended.BROKEN in found.values())


if __name__ == "__main__":
    sys.exit(main())
