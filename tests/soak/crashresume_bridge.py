"""The conformance harness `crashresume` from PyPI, over a bridge whose crash is the real end of a process.

Its agent is a process of its own that runs one Milepost run per input; each effect is told to the harness through a
pipe, and where the harness injects a crash, that process is killed. A point is how many inputs there are.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from crashresume import ConformanceReport, Context, InjectedCrash, conform
from tally import Harm, Points, broken

from milepost import Applied, CannotTell, Found, Key, NotFound, effect, step, task
from milepost.runtime.opening import read_snapshot
from milepost.stores.sqlite.store import SqliteStore

KIND = "runs of crashresume"
INPUTS_MAX = 6
HARMS = {
    "effect_replayed": Harm.REPEATED,
    "effect_lost": Harm.SKIPPED,
    "state_lost": Harm.FALSELY_VERIFIED,
    "resume_diverged": Harm.FALSELY_VERIFIED,
    "resume_crashed": Harm.STUCK,
}


# ── the agent: a process that talks JSON lines ──


def ask(**question: str) -> Any:
    print(json.dumps(question), flush=True)
    return json.loads(sys.stdin.readline())


def find(key: Key, order: str) -> Found[str] | NotFound | CannotTell:
    return Found(str(key), ref=str(key)) if ask(look_up=str(key)) else NotFound()


@effect(key=lambda order: order, lookup=find, settle=timedelta(0))
def charge(key: Key, order: str) -> Applied[str]:
    return Applied(ask(effect="charge", payload=order, key=str(key)), ref=str(key))


@effect(key=lambda order: order, lookup=find, settle=timedelta(0))
def mail(key: Key, order: str) -> Applied[str]:
    return Applied(ask(effect="mail", payload=order, key=str(key)), ref=str(key))


@step
def priced(order: str) -> int:
    return len(order)


@task
def fulfil(order: str) -> str:
    return f"{order}: {priced(order)} {charge(order)} {mail(order)}"


def safely(order: str) -> None:
    """Work on one input with Milepost."""
    with closing(SqliteStore(Path("store.sqlite"), create=True)) as store:
        fulfil.options(store=store, environ={"XDG_STATE_HOME": str(Path("state").absolute())}).run(order, order)


def naively(order: str) -> None:
    """Work on one input as people do who note what is done when it is done."""
    done = Path(f"{order}.done")
    if not done.exists():
        for kind in ("charge", "mail"):
            ask(effect=kind, payload=order, key=f"{kind} {order}")
        done.touch()


AGENTS: dict[str, Callable[[str], None]] = {"safely": safely, "naively": naively}


def main() -> None:
    for line in sys.stdin:
        AGENTS[sys.argv[1]](json.loads(line))
        print(json.dumps({"done": True}), flush=True)


# ── the bridge ──


class Bridge:
    """What the harness takes for an agent: passes inputs on to a process, and the process's effects to the harness."""

    def __init__(self, ctx: Context, agent: str, folder: Path) -> None:
        self.ctx, self._folder = ctx, folder / ctx.run_id
        self._folder.mkdir(parents=True, exist_ok=True)
        environ = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._process = subprocess.Popen(
            [sys.executable, __file__, agent],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=self._folder,
            env=environ,
        )

    def step(self, order: str) -> None:
        """Let the process work on one input. Raises: InjectedCrash, when the process is dead."""
        said = self._say(order)
        while "done" not in said:
            said = self._say(self._answer(said))

    def _answer(self, said: dict[str, str]) -> object:
        if "look_up" in said:
            return any(done.key == said["look_up"] for done in self.ctx.effects.effects)
        try:
            self.ctx.effect(said["effect"], said["payload"], key=said["key"])
        except InjectedCrash:
            self._process.kill()
            self._process.communicate()
            raise
        return said["key"]

    def _say(self, value: object) -> dict[str, str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(value) + "\n")
        self._process.stdin.flush()
        said: dict[str, str] = json.loads(self._process.stdout.readline())
        return said

    def state(self) -> dict[str, Any]:
        """Return what the store shows of each run, proven; the harness asks when all inputs are done."""
        self._process.communicate()
        if not (self._folder / "store.sqlite").exists():
            return {path.name: True for path in sorted(self._folder.glob("*.done"))}
        with closing(SqliteStore(self._folder / "store.sqlite", create=False)) as store:
            return {row.run_id: _standing(store, row.run_id) for row in store.runs()}


def _standing(store: SqliteStore, run_id: str) -> list[Any]:
    opened = read_snapshot(store, run_id, None, every_chain=True)
    assert opened.refusal is None, opened.refusal
    s = opened.snapshot
    result = s.ended.output.digest if s.ended is not None and s.ended.output is not None else None
    applied = sorted((path, state.applied.ref) for path, state in s.effects.items() if state.applied)
    return [s.status, s.verified_count, applied, result]


def conformance(agent: str, inputs: int, folder: Path) -> ConformanceReport:
    """Run the harness: a baseline, then a crash after each effect, each resumed in a new process."""
    return conform(lambda ctx: Bridge(ctx, agent, folder), [f"order-{number}" for number in range(inputs)])


@contextmanager
def opened(folder: Path) -> Iterator[Points]:
    yield [str(inputs) for inputs in range(1, INPUTS_MAX + 1)], lambda point: attempt(folder / point, int(point))


def attempt(folder: Path, inputs: int) -> None:
    """Let the harness judge. Raises: Violation."""
    report = conformance("safely", inputs, folder)
    assert report.crash_points == 2 * inputs
    for finding in report.findings:
        broken(HARMS[finding.kind], f"after effect {finding.crash_after}: {finding.detail}")


if __name__ == "__main__":
    main()
