"""The workloads of design §8, each in a process of its own: `python bench/workloads.py NAME FOLDER [SCALE]`.

Prints one JSON object with what was measured. `run.py` starts these, pairs them in rounds and prints the table.
SCALE (1 = as in the table) shrinks the counts for a quick look.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SCALE = float(sys.argv[3]) if len(sys.argv) > 3 else 1.0
STEPS = int(1000 * SCALE)
RUNS, RUN_STEPS, THREADS = int(200 * SCALE), 20, 64
RESUMED = int(10_000 * SCALE)
TEXT = "x" * 1000

Measured = dict[str, float]


def raw(folder: Path) -> Measured:
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


def _open_store() -> None:
    """Make and open the store before the clock starts, as `raw` does with its file."""
    from bench_plans import many_steps

    many_steps.run("w0", count=1)


def one_sync(folder: Path) -> Measured:
    from bench_plans import many_steps

    _open_store()
    began = time.perf_counter()
    many_steps.run("w1", count=STEPS)
    return {"steps_per_s": STEPS / (time.perf_counter() - began)}


def one_async(folder: Path) -> Measured:
    from bench_plans import many_async_steps

    _open_store()

    async def whole() -> float:
        began = time.perf_counter()
        await many_async_steps.run("w1", count=STEPS)
        return time.perf_counter() - began

    return {"steps_per_s": STEPS / asyncio.run(whole())}


def many_async(folder: Path) -> Measured:
    from bench_plans import many_async_steps

    _open_store()

    async def whole() -> float:
        began = time.perf_counter()
        await asyncio.gather(*(many_async_steps.run(f"w2-{n}", count=RUN_STEPS) for n in range(RUNS)))
        return time.perf_counter() - began

    return {"steps_per_s": RUNS * RUN_STEPS / asyncio.run(whole())}


def many_threads(folder: Path) -> Measured:
    from bench_plans import many_steps

    _open_store()
    began = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda n: many_steps.run(f"w2-{n}", count=RUN_STEPS), range(RUNS)))
    return {"steps_per_s": RUNS * RUN_STEPS / (time.perf_counter() - began)}


# ── resume ──────────────────────────────────────────────────────────────────────────────────────────


def resume(folder: Path) -> Measured:
    """Finish all steps but the last, die; then process start to the last step's body."""
    return {"seconds": _resume(folder, "flat_steps", RESUMED)}


def resume_half(folder: Path) -> Measured:
    return {"seconds": _resume(folder, "flat_steps", RESUMED // 2)}


def resume_nested(folder: Path) -> Measured:
    """100 finished steps of 100 finished steps each, against 100 finished steps."""
    outer = max(1, RESUMED // 100)
    (folder / "flat").mkdir()
    flat = _resume(folder / "flat", "flat_steps", outer)
    return {"seconds": _resume(folder, "nested_steps", outer * 100) - flat}


def _resume(folder: Path, plan: str, count: int) -> float:
    environment = _environment(folder)
    code = f"import bench_plans; bench_plans.{plan}.run('resumed', count={count})"
    command = [sys.executable, "-c", code]
    subprocess.run(command, cwd=folder, check=True, env={**environment, "BENCH_LAST": "die"})
    began = time.time()
    found = subprocess.run(command, cwd=folder, check=True, env=environment, capture_output=True, text=True)
    return float(found.stdout) - began


# ── imports, memory, flushes ────────────────────────────────────────────────────────────────────────


def imports(folder: Path) -> Measured:
    """Import time beyond a bare interpreter."""
    bare = _timed([sys.executable, "-c", "pass"])
    return {"seconds": _timed([sys.executable, "-c", "import milepost"]) - bare}


def help_text(folder: Path) -> Measured:
    return {"seconds": _timed([sys.executable, "-m", "milepost", "--help"])}


def _timed(command: list[str]) -> float:
    subprocess.run(command, check=True, capture_output=True)  # a first time for the disk's cache and the .pyc files
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began


def memory(folder: Path) -> Measured:
    """Peak memory of a run with ten times the outputs of 100 KB, above one with fewer."""
    few, many = int(200 * SCALE), int(2000 * SCALE)
    return {"growth_mb": (_peak_kb(folder, many) - _peak_kb(folder, few)) / 1024}


def _peak_kb(folder: Path, count: int) -> int:
    code = f"import bench_plans; bench_plans.large({count})"
    home = folder / str(count)
    home.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=home, check=True, env=_environment(home), capture_output=True, text=True
    )
    return int(done.stdout)


def flushes(folder: Path) -> Measured:
    """Disk flushes per step, counted by strace: what 400 steps need beyond 200."""
    return {"per_step": (_flushes(folder, 400) - _flushes(folder, 200)) / 200}


def _flushes(folder: Path, count: int) -> int:
    home = folder / str(count)
    home.mkdir()
    code = f"import bench_plans; bench_plans.many_steps.run('w1', count={count})"
    command = ["strace", "-f", "-qq", "-o", "trace", "-e", "trace=fsync,fdatasync", sys.executable, "-c", code]
    subprocess.run(command, cwd=home, check=True, env=_environment(home))
    return sum("sync(" in line for line in (home / "trace").read_text().splitlines())


def _environment(home: Path) -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH"))))
    store, state = str(home / "store.sqlite"), str(home / "state")
    return {**os.environ, "PYTHONPATH": path, "MILEPOST_STORE": store, "XDG_STATE_HOME": state}


WORKLOADS: dict[str, Callable[[Path], Measured]] = {
    f.__name__: f
    for f in (
        *(raw, one_sync, one_async, many_async, many_threads),
        *(resume, resume_half, resume_nested, imports, help_text, memory, flushes),
    )
}


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2]).absolute()
    os.chdir(folder)
    # An installed package is compiled once, not at each start: bytecode is kept, beside the store.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.setdefault("PYTHONPYCACHEPREFIX", str(folder / "bytecode"))
    os.environ.update(_environment(folder))
    threading.stack_size(512 * 1024)
    print(json.dumps(WORKLOADS[name](folder)))


if __name__ == "__main__":
    main()
