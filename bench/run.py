"""`make bench`: the table of design §8 on this machine, beside raw SQLite commits of the same minute.

Each workload runs in a process of its own, in rounds; a ratio is taken to the raw commits right before and right
after it. Prints medians, the range, what is promised, the aim and a verdict. A report, never a test: it always exits 0.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: what runs, what is read from it, and what design §8 promises."""

    what: str
    workload: str
    measure: str  # a ratio is steps_per_s over raw's
    promised: float
    aim: float
    unit: str  # "ratio": at least so much; everything else: at most

    @property
    def sign(self) -> str:
        return "≥" if self.unit == "ratio" else "≤"

    def verdict(self, value: float) -> str:
        if not self._holds(value, self.promised):
            return "MISSED"
        return "aim reached" if self._holds(value, self.aim) else "kept"

    def _holds(self, value: float, bound: float) -> bool:
        return value >= bound if self.unit == "ratio" else value <= bound


TABLE = (
    Line("one synchronous run, 1,000 steps of 1 KB", "one_sync", "steps_per_s", 0.4, 0.6, "ratio"),
    Line("one asynchronous run, the same", "one_async", "steps_per_s", 0.3, 0.35, "ratio"),
    Line("200 runs of 20 steps at once, asyncio", "many_async", "steps_per_s", 0.65, 1.5, "ratio"),
    Line("the same, 64 threads", "many_threads", "steps_per_s", 0.45, 0.8, "ratio"),
    Line("disk flushes per step, one run", "flushes", "per_step", 1.05, 1.05, "a step"),
    Line("resume of 10,000 finished steps", "resume", "seconds", 0.6, 0.5, "s"),
    Line("resume of 5,000 (half the steps, half the time)", "resume_half", "seconds", 0.35, 0.3, "s"),
    Line("resume of 100 × 100 nested, beyond 100 flat", "resume_nested", "seconds", 0.15, 0.1, "s"),
    Line("import of milepost, beyond a bare interpreter", "imports", "seconds", 0.15, 0.15, "s"),
    Line("milepost --help", "help_text", "seconds", 0.3, 0.3, "s"),
    Line("peak memory of 2,000 outputs of 100 KB, beyond 200", "memory", "growth_mb", 10.0, 10.0, "MB"),
)


class Rounds:
    """Runs workloads and keeps what they measured, by line."""

    def __init__(self, place: Path, scale: float) -> None:
        self._place, self._scale = place, scale
        self.values: dict[str, list[float]] = defaultdict(list)
        self.raw: list[float] = []
        self.failed: dict[str, str] = {}

    def round(self) -> None:
        """Measure every line once; raw commits stand between those that are compared with them."""
        before = self._raw()
        for line in TABLE:
            found = self._measure(line.workload)
            if found is None:
                continue
            if line.unit != "ratio":
                self.values[line.what].append(found[line.measure])
                continue
            after = self._raw()
            self.values[line.what].append(found[line.measure] / statistics.mean((before, after)))
            before = after

    def _raw(self) -> float:
        found = self._measure("raw")
        assert found is not None, self.failed["raw"]
        self.raw.append(found["steps_per_s"])
        return self.raw[-1]

    def _measure(self, workload: str) -> dict[str, float] | None:
        if workload == "flushes" and shutil.which("strace") is None:
            self.failed[workload] = "strace is not installed"
            return None
        with tempfile.TemporaryDirectory(dir=self._place) as folder:
            command = [sys.executable, str(HERE / "workloads.py"), workload, folder, str(self._scale)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            self.failed[workload] = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            return None
        measured: dict[str, float] = json.loads(done.stdout)
        return measured


def peers(place: Path, steps: int, raw: float) -> Iterator[str]:
    """Yield a line for each peer: its median ratio, or why there is none. Their own defaults, same disk."""
    python = os.environ.get("BENCH_PEERS_PYTHON", sys.executable)
    for peer in ("dbos", "langgraph-task", "langgraph-graph"):
        with tempfile.TemporaryDirectory(dir=place) as folder:
            command = [python, str(HERE / "peers.py"), peer, folder, str(steps)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = done.stdout.strip().splitlines()
        if done.returncode or not lines:
            reason = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            yield f"{peer:<52} {reason[:80]}"
        else:
            yield f"{peer:<52} {float(lines[-1]) / raw:>9.2f}"


def table(rounds: Rounds) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"{'':<52} {'median':>9} {'range':>15} {'promised':>14} {'aim':>5}"
    for line in TABLE:
        values = rounds.values[line.what]
        if not values:
            yield f"{line.what:<52} not measured: {rounds.failed.get(line.workload, '')[:80]}"
            continue
        middle = statistics.median(values)
        reached = f"{min(values):.2f} … {max(values):.2f}"
        promised = f"{line.sign}{line.promised:g} {line.unit}"
        yield f"{line.what:<52} {middle:>9.2f} {reached:>15} {promised:>14} {line.aim:>5g}  {line.verdict(middle)}"


def heading(raw: list[float]) -> str:
    versions = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {os.cpu_count()} cores"
    load = f"load {os.getloadavg()[0]:.1f}"
    low, middle, high = min(raw), statistics.median(raw), max(raw)
    return f"{versions}, {load}; raw one-row commits: {middle:,.0f}/s ({low:,.0f} … {high:,.0f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="rounds to take the median of (5)")
    parser.add_argument("--quick", action="store_true", help="two rounds of a tenth of the steps, to see that it works")
    parser.add_argument("--json", action="store_true", help="print the measured values instead of the table")
    parser.add_argument("--no-peers", action="store_true", help="leave out other systems")
    parser.add_argument("--folder", type=Path, default=Path(), help="where to write: the disk that is measured")
    options = parser.parse_args()
    scale, count = (0.1, 2) if options.quick else (1.0, options.rounds)
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=options.folder) as folder:
        rounds = Rounds(Path(folder).absolute(), scale)
        with suppress(KeyboardInterrupt):  # the table of what was measured so far
            for number in range(count):
                print(f"round {number + 1} of {count} …", file=sys.stderr, flush=True)
                rounds.round()
        if options.json:
            print(json.dumps({"raw": rounds.raw, "values": rounds.values, "failed": rounds.failed}, indent=2))
            return
        print(heading(rounds.raw), *table(rounds), sep="\n")
        if not options.no_peers:
            print("\nPeers, one run of the same steps, ratio to the same raw commits (see bench/README.md):")
            for line in peers(Path(folder), int(1000 * scale), statistics.median(rounds.raw)):
                print(line, flush=True)


if __name__ == "__main__":
    main()
