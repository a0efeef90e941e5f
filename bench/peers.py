"""One run of the same steps in other systems, with their own defaults: `python bench/peers.py PEER FOLDER STEPS`.

Prints steps per second. `run.py` starts this with the Python named by BENCH_PEERS_PYTHON, so that no peer has to be
installed beside Milepost.
"""

from __future__ import annotations

import importlib.util
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

REST = "x" * 992


def output(number: int) -> dict[str, str]:
    return {"text": f"{number:08d}{REST}"}


def dbos(folder: Path, steps: int) -> float:
    """DBOS on SQLite as it sets it up: a rollback journal, synchronous=FULL."""
    from dbos import DBOS  # type: ignore[import-not-found, unused-ignore]

    url = f"sqlite:///{folder / 'dbos.sqlite'}"
    DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR", "console_log_level": "ERROR"})
    trivial = DBOS.step()(output)

    @DBOS.workflow()  # type: ignore[untyped-decorator, unused-ignore]
    def flow(count: int) -> None:
        for number in range(count):
            trivial(number)

    DBOS.launch()
    flow(10)
    return timed(lambda: flow(steps), steps)


def langgraph_task(folder: Path, steps: int) -> float:
    """LangGraph's functional API, durability="sync": the next task still starts before a result is stored."""
    from langgraph.func import entrypoint, task  # type: ignore[import-not-found, unused-ignore]

    trivial = task(output)

    @entrypoint(checkpointer=_saver(folder))  # type: ignore[untyped-decorator, unused-ignore]
    def flow(count: int) -> None:
        for number in range(count):
            trivial(number).result()

    def run(name: str, count: int) -> None:
        flow.invoke(count, {"configurable": {"thread_id": name}}, durability="sync")

    run("warm", 10)
    return timed(lambda: run("bench", steps), steps)


def langgraph_graph(folder: Path, steps: int) -> float:
    """A LangGraph state graph whose one node loops, durability="sync": two commits a step."""
    from typing import TypedDict

    from langgraph.graph import END, START, StateGraph  # type: ignore[import-not-found, unused-ignore]

    class State(TypedDict, total=False):
        number: int
        count: int
        output: dict[str, str]

    graph = StateGraph(State)
    graph.add_node("trivial", lambda s: {"number": s["number"] + 1, "output": output(s["number"])})
    graph.add_edge(START, "trivial")
    graph.add_conditional_edges("trivial", lambda s: "trivial" if s["number"] < s["count"] else END, ["trivial", END])
    app = graph.compile(checkpointer=_saver(folder))

    def run(name: str, count: int) -> None:
        options = {"configurable": {"thread_id": name}, "recursion_limit": count + 10}
        app.invoke({"number": 0, "count": count}, options, durability="sync")

    run("warm", 10)
    return timed(lambda: run("bench", steps), steps)


def _saver(folder: Path) -> Any:
    from langgraph.checkpoint.sqlite import SqliteSaver  # type: ignore[import-not-found, unused-ignore]

    saver = SqliteSaver(sqlite3.connect(folder / "langgraph.sqlite", check_same_thread=False))
    saver.setup()
    return saver


def timed(run: Callable[[], object], steps: int) -> float:
    began = time.perf_counter()
    run()
    return steps / (time.perf_counter() - began)


PEERS = {"dbos": dbos, "langgraph-task": langgraph_task, "langgraph-graph": langgraph_graph}


def main() -> None:
    name, folder, steps = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    package = name.partition("-")[0]
    if importlib.util.find_spec(package) is None:
        sys.exit(f"not installed: name a Python that has {package} in BENCH_PEERS_PYTHON")
    print(PEERS[name](folder, steps), flush=True)


if __name__ == "__main__":
    main()
