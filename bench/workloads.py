"""The workloads of design §8, each run in a process of its own: `python bench/workloads.py NAME FOLDER`.

Prints one JSON object with what was measured. `run.py` starts these, pairs them in rounds and prints the table.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

STEPS = int(os.environ.get("BENCH_STEPS", "1000"))
RUNS, RUN_STEPS, THREADS = 200, 20, 64
RESUMED = int(os.environ.get("BENCH_RESUMED", "10000"))
TEXT = "x" * 1000


def raw(folder: Path) -> dict[str, float]:
    """One-row commits with the settings Milepost uses: WAL, synchronous=FULL."""
    connection = sqlite3.connect(folder / "raw.sqlite", isolation_level=None)
    assert connection.execute("pragma journal_mode=WAL").fetchone() == ("wal",)
    connection.execute("pragma synchronous=FULL")
    assert connection.execute("pragma synchronous").fetchone() == (2,)
    connection.execute("create table steps (number integer primary key, output text)")
    began = time.perf_counter()
    for number in range(STEPS):
        connection.execute("insert into steps values (?, ?)", (number, TEXT))
    return {"steps_per_s": STEPS / (time.perf_counter() - began)}


def one_sync(folder: Path) -> dict[str, float]:
    from bench_plans import many_steps

    began = time.perf_counter()
    many_steps.run("w1", count=STEPS)
    return {"steps_per_s": STEPS / (time.perf_counter() - began)}


def one_async(folder: Path) -> dict[str, float]:
    from bench_plans import many_async_steps

    async def whole() -> float:
        began = time.perf_counter()
        await many_async_steps.run("w1", count=STEPS)
        return time.perf_counter() - began

    return {"steps_per_s": STEPS / asyncio.run(whole())}


def many_async(folder: Path) -> dict[str, float]:
    from bench_plans import many_async_steps

    async def whole() -> float:
        began = time.perf_counter()
        await asyncio.gather(*(many_async_steps.run(f"w2-{n}", count=RUN_STEPS) for n in range(RUNS)))
        return time.perf_counter() - began

    return {"steps_per_s": RUNS * RUN_STEPS / asyncio.run(whole())}


def many_threads(folder: Path) -> dict[str, float]:
    from bench_plans import many_steps

    began = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda n: many_steps.run(f"w2-{n}", count=RUN_STEPS), range(RUNS)))
    return {"steps_per_s": RUNS * RUN_STEPS / (time.perf_counter() - began)}


def resume(folder: Path, plan: str = "many_steps", count: int = RESUMED) -> dict[str, float]:
    """Process start to the next step of a run whose steps are all finished but the last."""
    code = f"import bench_plans; bench_plans.prepare({plan!r}, {count})"
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, env=_environment())
    code = f"import bench_plans; bench_plans.go_on({plan!r}, {count})"
    began = time.time()
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, check=True, env=_environment(), capture_output=True, text=True
    )
    return {"resume_s": float(found.stdout) - began}


def resume_half(folder: Path) -> dict[str, float]:
    return resume(folder, count=RESUMED // 2)


def resume_nested(folder: Path) -> dict[str, float]:
    return resume(folder, plan="nested_steps")


def imports(folder: Path) -> dict[str, float]:
    """Import time beyond a bare interpreter, and `milepost --help` as a whole."""
    return {
        "import_s": _timed([sys.executable, "-c", "import milepost"]) - _timed([sys.executable, "-c", "pass"]),
        "help_s": _timed([sys.executable, "-m", "milepost", "--help"]),
    }


def _timed(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began


def memory(folder: Path) -> dict[str, float]:
    """Peak memory of a run with outputs of 100 KB each, few and many."""
    few, many = (int(_peak(folder, count)) for count in (200, 2000))
    return {"peak_mb_200": few / 1024, "peak_mb_2000": many / 1024}


def _peak(folder: Path, count: int) -> str:
    code = f"import bench_plans; bench_plans.large({count})"
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, check=True, env=_environment(), capture_output=True, text=True
    ).stdout


def flushes(folder: Path) -> dict[str, float]:
    """Disk flushes per step, counted by strace."""
    code = "import bench_plans; bench_plans.many_steps.run('w1', count=200)"
    trace = folder / "trace"
    command = ["strace", "-f", "-qq", "-o", str(trace), "-e", "trace=fsync,fdatasync", sys.executable, "-c", code]
    subprocess.run(command, cwd=folder, check=True, env=_environment())
    calls = sum(1 for line in trace.read_text().splitlines() if "sync(" in line and "resumed" not in line)
    return {"flushes_per_step": calls / 200}


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}


def peak_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


WORKLOADS: dict[str, Callable[[Path], dict[str, float]]] = {
    f.__name__: f
    for f in (
        raw, one_sync, one_async, many_async, many_threads, resume, resume_half, resume_nested, imports, memory, flushes,
    )
}  # fmt: skip


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2])
    os.chdir(folder)
    threading.stack_size(512 * 1024)
    print(json.dumps(WORKLOADS[name](folder)))


if __name__ == "__main__":
    main()
