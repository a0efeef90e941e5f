"""The whole drill: two undisturbed runs, then every trial in a world of its own, on as many workers as asked for.

Called by the command line and by the pytest plugin; tells whoever listens of each trial as it ends.
"""

from __future__ import annotations

import queue
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TypeAlias

from milepost.drill.choosing import Trial, Wanted, chosen, end_of
from milepost.drill.compare import fields
from milepost.drill.outcome import Outcome, Report, Verdict
from milepost.drill.provider import running
from milepost.drill.starter import Starter, Stuck
from milepost.drill.undisturbed import Reference, refer, undisturbed
from milepost.drill.world import Broken, Drilled, World
from milepost.errors import MilepostError, MisuseError

Listener: TypeAlias = Callable[[Outcome, int, int], None]
"""Hears of a trial that ended: its outcome, how many ended, how many there are."""

NAME_LENGTH_MAX = 100
"""Characters of a kept world's name: a point has a path in it, which may be longer than a file's name."""


def drill(drilled: Drilled, wanted: Wanted, *, replay: str = "", listener: Listener | None = None) -> Report:
    """Drill a task and report; `replay` is the command that replays a point, up to the point's name.

    Raises: MisuseError when the task does not even run undisturbed.
    """
    began = time.monotonic()
    report = Report(task=drilled.name, replay=replay)
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="milepost-drill-"))).resolve()
        provider = stack.enter_context(running(root / "provider.sqlite", root))
        worlds = Worlds(root, drilled, provider)
        starters = [_started(stack, drilled, wanted) for _ in range(wanted.workers)]
        reference = _referred(worlds, starters, wanted, report)
        todo = chosen(reference, wanted)
        report.outcomes = Campaign(worlds, reference, wanted.keep, listener).carry_out(todo, starters)
    if drilled.observe is None and report.effect_count:
        report.hints.append("without observe, only Milepost's own records were compared, not what the outside has")
    report.seconds = time.monotonic() - began
    return report


def _started(stack: ExitStack, drilled: Drilled, wanted: Wanted) -> Starter:
    modules = [what for what in (drilled.task, drilled.observe, drilled.setup) if what is not None]
    starter = Starter(modules, wanted.patience_s)
    stack.callback(starter.close)
    return starter


def _referred(worlds: Worlds, starters: Sequence[Starter], wanted: Wanted, report: Report) -> Reference:
    def seen(starter: Starter) -> Reference:
        try:
            with worlds.fresh(starter) as world:
                return undisturbed(world)
        except Broken as error:
            raise MisuseError(reason=str(error)) from error

    with ThreadPoolExecutor(len(starters[:2])) as pool:  # one after the other when there is only one worker
        one, other = pool.map(seen, (starters[0], starters[-1]))
    return refer(one, other, fields(wanted.ignore), wanted.allow, report)


class Worlds:
    """Makes one world after another, each with its own place at the provider."""

    def __init__(self, root: Path, drilled: Drilled, provider: str) -> None:
        self._root, self._drilled, self._provider = root, drilled, provider
        self._numbers = count(1)

    def fresh(self, starter: Starter) -> World:
        name = f"w{next(self._numbers)}"
        return World(self._root / name, self._drilled, starter, f"{self._provider}/{name}")


class Campaign:
    """Carries trials out on worker threads, each with a warm process of its own."""

    def __init__(self, worlds: Worlds, reference: Reference, keep: Path | None, listener: Listener | None) -> None:
        self._worlds, self._reference, self._keep, self._listener = worlds, reference, keep, listener
        self._lock = threading.Lock()
        self._waiting: queue.SimpleQueue[tuple[int, Trial]] = queue.SimpleQueue()
        self._found: dict[int, Outcome] = {}
        self._problems: list[BaseException] = []

    def carry_out(self, todo: Sequence[Trial], starters: Sequence[Starter]) -> list[Outcome]:
        """Carry out every trial; outcomes come in the order of the trials, whichever worker had them."""
        for pair in enumerate(todo):
            self._waiting.put(pair)
        workers = [threading.Thread(target=self._work, args=(starter, len(todo))) for starter in starters]
        for worker in workers:
            worker.start()
        try:
            for worker in workers:
                worker.join()
        except BaseException as stopped:  # Ctrl-C: the workers end with the trial they are at
            self._problems.append(stopped)
            raise
        if self._problems:
            raise self._problems[0]
        return [self._found[number] for number in sorted(self._found)]

    def _work(self, starter: Starter, total: int) -> None:
        """Carry out trials until none is left or one met a bug of ours."""
        try:
            with ExitStack() as stack:
                stopped: list[World] = []
                while not self._problems and not self._waiting.empty():
                    self._next(stack, starter, stopped, total)
        except queue.Empty:
            return  # another worker took the last one
        except BaseException as error:  # noqa: BLE001 – raised again by the thread that waits for this one
            self._problems.append(error)

    def _next(self, stack: ExitStack, starter: Starter, stopped: list[World], total: int) -> None:
        number, trial = self._waiting.get_nowait()
        began = time.monotonic()
        try:
            if trial.stopped and not stopped:
                stopped.append(self._stopped(stack, starter))
            outcome = trial.act(stopped[0]) if trial.stopped else self._in_fresh_world(trial, starter)
        except (Broken, MilepostError) as error:
            outcome = Outcome(trial.kind, trial.point, Verdict.FAILED, said=str(error))
        except Stuck:
            outcome = Outcome(trial.kind, trial.point, Verdict.FAILED, said="a process did not end in time")
        self._ended(number, replace(outcome, seconds=round(time.monotonic() - began, 3)), total)

    def _ended(self, number: int, outcome: Outcome, total: int) -> None:
        with self._lock:
            self._found[number] = outcome
            if self._listener is not None:
                self._listener(outcome, len(self._found), total)

    def _stopped(self, stack: ExitStack, starter: Starter) -> World:
        """Return a world whose run stands before its end, for all trials of one worker that only read it."""
        world = stack.enter_context(self._worlds.fresh(starter))
        world.run(stop=end_of(self._reference.points).place)
        return world

    def _in_fresh_world(self, trial: Trial, starter: Starter) -> Outcome:
        with self._worlds.fresh(starter) as world:
            outcome = trial.act(world)
            if outcome.failed and self._keep is not None:
                world.keep_in(self._keep / _as_name(trial.point))
        return outcome


def _as_name(point: str) -> str:
    """Return a folder's name for a trial; two trials may have the same."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in point)[:NAME_LENGTH_MAX]
