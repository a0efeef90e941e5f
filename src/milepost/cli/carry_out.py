"""Carries out a run for `run` and `resume`: the view on stderr, the result on stdout, the exit status."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from milepost.api import AsyncTask
from milepost.cli.live import view
from milepost.cli.load import AnyTask
from milepost.cli.output import note, only_results_on_stdout, say_result
from milepost.cli.telling import tell
from milepost.config import Config, load_config
from milepost.errors import (
    BadConfig,
    CorruptRecord,
    LoopStopped,
    MilepostError,
    QuestionError,
    RunInterrupted,
    StepFailed,
)
from milepost.protocol.failure import cancellations, error_record
from milepost.runtime.children import keep_orphans
from milepost.runtime.leases import ends_with_its_run
from milepost.stores.contract import RunRow, Store
from milepost.views.checkpoint import result_data
from milepost.views.opened import read_whole, stands
from milepost.views.words import counted

Inputs: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class How:
    """How a person wants it: whether to wait in the foreground, whether to draw, whether to answer in JSON."""

    wait: bool
    plain: bool
    as_json: bool
    shadow: bool = False


def carry_out(task: AnyTask, run_id: str, inputs: Inputs | None, store: Store, how: How) -> int:
    """Start a run (or, without inputs, resume one), show it, print what came of it; return the exit status."""
    row = store.run(run_id)
    is_shadow = row.shadow if row is not None else how.shadow
    about: dict[str, object] = {"run_id": run_id, "task": task.spec.name, **({"shadow": True} if is_shadow else {})}
    shadow, nothing = ("SHADOW ", "; no effect is sent") if is_shadow else ("", "")
    note(f"{shadow}run {run_id}{_so_far(store, run_id)}{nothing}")
    settings = _settings(store)
    keep_orphans()
    try:
        with only_results_on_stdout(), ends_with_its_run(), view(plain=how.plain) as shown:
            shown.seen.shadow = is_shadow
            ready = task.options(
                store=store,
                watch=shown.watch,
                waiting=shown.waiting,
                wait=how.wait,
                shadow=how.shadow,
                folder=os.getcwd(),
            )
            result = _driven(ready, run_id, inputs)
    except CorruptRecord as error:  # what its row says is not trusted either
        return tell(error, as_json=how.as_json, **about, status=None)
    except MilepostError as error:
        if isinstance(error, QuestionError):
            _tell_people(store, settings)
        return tell(error, as_json=how.as_json, **about, status=_status(store, run_id))
    except _endings() as error:
        told = _ended_by(store, run_id, error)
        return tell(told, as_json=how.as_json, **about, status=_status(store, run_id))
    output = task.spec.output
    say_result(result_data(output.encode(result), output.media_type), about, as_json=how.as_json)
    _note_done(store, run_id)
    return 0


def _settings(store: Store) -> Config | BadConfig:
    """Read how people are told before anything runs: a step that writes `milepost.toml` does not say who answers it."""
    try:
        return load_config(Path.cwd(), Path(store.location))
    except BadConfig as error:
        return error  # it matters only when there is something to tell


def _tell_people(store: Store, settings: Config | BadConfig) -> None:
    from milepost.cli.people import tell_people  # a run that asks nothing need not wait for it

    tell_people(store, settings)


def _driven(task: AnyTask, run_id: str, inputs: Inputs | None) -> Any:
    started = task.resume(run_id) if inputs is None else task.run(run_id, *inputs[0], **inputs[1])
    return _awaited(started, run_id) if isinstance(task, AsyncTask) else started


def _endings() -> tuple[type[BaseException], ...]:
    """Return what ends a program, or a loop's task, and is no failure of the plan."""
    return (KeyboardInterrupt, SystemExit, *cancellations())


def _awaited(started: Coroutine[Any, Any, Any], run_id: str) -> Any:
    """Run an asynchronous task to its end on a loop of its own. Raises: LoopStopped when somebody stopped the loop."""
    import asyncio  # here: synchronous tasks need none of it

    raised: list[RuntimeError] = []

    async def whole() -> Any:
        try:
            return await started
        except RuntimeError as error:
            raised.append(error)
            raise

    try:
        return asyncio.run(whole())
    except RuntimeError as error:
        if error in raised:
            raise
        raise LoopStopped(run_id=run_id) from error


def _ended_by(store: Store, run_id: str, error: BaseException) -> MilepostError:
    """Return what ended a run past everything that fails or stops one, as an error to tell."""
    if isinstance(error, KeyboardInterrupt):
        return RunInterrupted(run_id=run_id, signal_number=int(signal.SIGINT))
    attempt = read_whole(store, run_id).snapshot.resumes + 1
    failed = StepFailed(run_id=run_id, path="the plan", attempt=attempt, error=str(error_record(error)))
    failed.__cause__ = error
    return failed


def _so_far(store: Store, run_id: str) -> str:
    row = store.run(run_id)
    if row is None or stands(store, row).word == "running":  # then it is refused: somebody else works on it
        return ""
    return f" goes on: {_done(row)}{'' if row.shadow else ' so far'}"


def _status(store: Store, run_id: str) -> str | None:
    try:
        row = store.run(run_id)
    except MilepostError:
        return None
    return row.progress.status if row is not None else None


def _note_done(store: Store, run_id: str) -> None:
    row = store.run(run_id)
    if row is not None and row.shadow:
        report = f"`milepost shadow report {shlex.quote(run_id)}`"
        note(f"SHADOW run {run_id} is done, NOTHING WAS SENT. {report} tells what would have been.")
    elif row is not None:
        note(f"run {run_id} is done: {_done(row)}. `milepost show {shlex.quote(run_id)}` tells all.")


def _done(row: RunRow) -> str:
    verified = f"{counted(row.progress.verified_count, 'step')} verified"
    return verified if row.shadow else f"{verified}, {counted(row.progress.applied_count, 'effect')} applied"
