"""The same toy in Milepost and in its peers: one effect, killed between the provider's accept and the record.

`python tools/peers_toy.py [--tries N]` starts each toy N times, kills it there, starts it again until it ends, and
counts how often the provider applied. Peers are looked for in the Pythons that PEERS_PYTHONS names (separated by
colons), so that none has to be installed beside Milepost. Each is as its own documentation teaches, on SQLite.
"""

from __future__ import annotations

import argparse
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from results import ROOT, note

STARTS_MAX = 3
START_S_MAX = 120
KEY = "invoice-7"


# ── the provider: a ledger that outlives every kill, and the place to die ──


def accept(folder: Path, key: str) -> str:
    """Apply at the provider; the first time, die before anybody hears of it."""
    with (folder / "ledger").open("a", encoding="utf-8") as ledger:
        ledger.write(key + "\n")
    if not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "receipt"


def applied(folder: Path) -> list[str]:
    ledger = folder / "ledger"
    return ledger.read_text(encoding="utf-8").splitlines() if ledger.exists() else []


# ── the toys: one start each, which resumes what an earlier start left ──


def milepost(folder: Path, **dealings: Any) -> str:
    """Milepost on SQLite; what it does in doubt follows from what is declared of the provider."""
    from milepost import Key, QuestionError, effect, task

    @effect(**dealings)
    def post(key: Key, invoice: str) -> str:
        return accept(folder, str(key))

    @task
    def toy(invoice: str) -> str:
        return post(invoice)

    os.chdir(folder)
    try:
        toy.run("run-1", invoice=KEY)
    except QuestionError:
        return "asks"
    return "done"


def milepost_looked_up(folder: Path) -> str:
    from datetime import timedelta

    from milepost import Found, Key, NotFound

    def find(key: Key, invoice: str) -> Found[str] | NotFound:
        return Found("receipt") if str(key) in applied(folder) else NotFound()

    return milepost(folder, lookup=find, settle=timedelta(0))


def dbos(folder: Path) -> str:
    """DBOS on SQLite: a workflow with one step, recovered at launch and called again under its id."""
    from dbos import DBOS, SetWorkflowID

    url = f"sqlite:///{folder / 'dbos.sqlite'}"
    DBOS(config={"name": "toy", "system_database_url": url, "log_level": "ERROR", "console_log_level": "ERROR"})

    @DBOS.step()
    def post(invoice: str) -> str:
        return accept(folder, invoice)

    @DBOS.workflow()
    def toy(invoice: str) -> str:
        return post(invoice)

    DBOS.launch()
    with SetWorkflowID("run-1"):
        toy(KEY)
    DBOS.destroy()
    return "done"


def langgraph_task(folder: Path) -> str:
    """LangGraph's functional API on SQLite with durability="sync", resumed as its documentation says."""
    from langgraph.func import entrypoint, task

    @task
    def post(invoice: str) -> str:
        return accept(folder, invoice)

    @entrypoint(checkpointer=_saver(folder))
    def toy(invoice: str) -> str:
        return post(invoice).result()

    first = not (folder / "died").exists()
    toy.invoke(KEY if first else None, {"configurable": {"thread_id": "run-1"}}, durability="sync")
    return "done"


def langgraph_graph(folder: Path) -> str:
    """A LangGraph state graph of one node on SQLite with durability="sync"."""
    from typing import TypedDict

    from langgraph.graph import END, START, StateGraph

    class State(TypedDict, total=False):
        invoice: str
        receipt: str

    graph = StateGraph(State)
    graph.add_node("post", lambda state: {"receipt": accept(folder, state["invoice"])})
    graph.add_edge(START, "post")
    graph.add_edge("post", END)
    app = graph.compile(checkpointer=_saver(folder))
    first = not (folder / "died").exists()
    app.invoke({"invoice": KEY} if first else None, {"configurable": {"thread_id": "run-1"}}, durability="sync")
    return "done"


def _saver(folder: Path) -> Any:
    from langgraph.checkpoint.sqlite import SqliteSaver

    saver = SqliteSaver(sqlite3.connect(folder / "langgraph.sqlite", check_same_thread=False))
    saver.setup()
    return saver


TOYS: dict[str, tuple[str, Callable[[Path], str]]] = {
    "Milepost, provider that can be looked up": ("milepost", milepost_looked_up),
    "Milepost, provider that keeps and tells nothing": ("milepost", milepost),
    "DBOS": ("dbos", dbos),
    "LangGraph, functional API": ("langgraph", langgraph_task),
    "LangGraph, graph": ("langgraph", langgraph_graph),
}


# ── measuring ──


def measured(name: str, python: str, version: str, tries: int) -> dict[str, object]:
    """Try a toy so many times; return its line of the results."""
    began = time.monotonic()
    counts, ends = [], []
    for _ in range(tries):
        with tempfile.TemporaryDirectory(prefix="peer-") as folder:
            ends.append(brought_to_its_end(name, python, Path(folder)))
            counts.append(len(applied(Path(folder))))
    return {
        "peer": name,
        "version": version,
        "tried": tries,
        "applied_more_than_once": sum(count > 1 for count in counts),
        "applied_once": counts.count(1),
        "asked_a_person": ends.count("asks"),
        "not_ended": ends.count("gave up"),
        "seconds": round(time.monotonic() - began, 1),
    }


def brought_to_its_end(name: str, python: str, folder: Path) -> str:
    """Start a toy until it says how it ended. Raises: AssertionError when the kill did not happen."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT / "src")}
    command = [python, str(Path(__file__).resolve()), "--start", name, str(folder)]
    for number in range(STARTS_MAX):
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=START_S_MAX, check=False)
        if number == 0:
            assert done.returncode == -signal.SIGKILL, (name, done.returncode, done.stdout, done.stderr)
        elif done.returncode == 0:
            return done.stdout.split()[-1]
    return "gave up"


def found_in(package: str) -> tuple[str, str] | None:
    """Return a Python that has a package, and the package's version."""
    given = [name for name in os.environ.get("PEERS_PYTHONS", "").split(":") if name]
    for python in [sys.executable, *given]:
        code = f"import importlib.metadata as m; print(m.version({package!r}))"
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return python, done.stdout.strip()
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--start", nargs=2, metavar=("TOY", "FOLDER"), help="one start of one toy")
    given = parser.parse_args()
    if given.start:
        print(TOYS[given.start[0]][1](Path(given.start[1])))
        return
    for name, (package, _) in TOYS.items():
        found = found_in(package)
        if found is None:
            print(f"{name}: not installed; name a Python that has {package} in PEERS_PYTHONS")
            continue
        line = measured(name, *found, given.tries)
        note(line)
        print(
            f"{name} {line['version']}: applied more than once {line['applied_more_than_once']} of {given.tries}, "
            f"asked a person {line['asked_a_person']}",
            flush=True,
        )


if __name__ == "__main__":
    main()
