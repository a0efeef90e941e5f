"""Starting and going on: open or create a run, drive its journey, give it back. `run()` and `resume` come through here.

How the journey ended is told by `door`: outside there are only results and `MilepostError`s.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from milepost.errors import (
    InputsDiffer,
    MisuseError,
    RunEnded,
    RunInterrupted,
    RunUnstarted,
    ShadowDiffers,
    StepFailed,
    WrongTask,
)
from milepost.protocol.decide import World
from milepost.protocol.keep import beside
from milepost.protocol.keys import checked_name
from milepost.protocol.ops import Artifact, Steps
from milepost.protocol.spec import TaskSpec
from milepost.records.canonical import Json, canonical, digest, parse
from milepost.records.compare import difference
from milepost.records.fingerprint import fingerprint
from milepost.records.frozen import slotted
from milepost.records.model import ARTIFACT_ROW_MAX, ENDED, RunStarted, RunStatus
from milepost.records.paths import find_paths
from milepost.records.seal import Sealer, key_name
from milepost.records.times import format_time
from milepost.runtime import crash
from milepost.runtime.active import ActiveRun, RunOptions
from milepost.runtime.children import agent_of
from milepost.runtime.clock import Clock, SystemClock, moment
from milepost.runtime.copies import copies_of
from milepost.runtime.door import told
from milepost.runtime.drive import drive
from milepost.runtime.guarded import refuse_live, watch_over
from milepost.runtime.journal import Journal
from milepost.runtime.journey import journey, resumed, take_up_answers
from milepost.runtime.keeping import Artifacts
from milepost.runtime.leases import KEEPER, me, take
from milepost.runtime.limiting import count_unread, declared_limits
from milepost.runtime.loading import load
from milepost.runtime.opening import Opened, row_of, row_of_new, went_back
from milepost.runtime.registry import check_unambiguous
from milepost.runtime.scope import RuntimeCall
from milepost.runtime.taken import Taken
from milepost.runtime.trust import check_lease, read_trusted
from milepost.runtime.witness import witness_of
from milepost.sources import observe, of_path
from milepost.stores.contract import Lease, NewRun, RunRow, Store

if TYPE_CHECKING:
    from milepost.protocol.role import Promoted


INPUTS_HINT = "Give them after the run id, as the task's function takes them: `run(run_id, …)`."


@slotted
class Inputs:
    """The inputs of a start: None for a resume, which takes the recorded ones."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@slotted
class Opening:
    """A run about to go on: what the journey needs, or the recorded result of one that is done."""

    run: ActiveRun
    call: RuntimeCall
    world: World
    is_resume: bool


def run_task(task: TaskSpec, run_id: str, inputs: Inputs | None, store: Store, options: RunOptions) -> Any:
    """Run or resume a task in this thread until it is done, waits, asks or fails.

    Raises: QuestionError, RunWaiting, StepFailed, Declined, RefusedError, MisuseError, UnavailableError,
    RunInterrupted.
    Crash: whatever is recorded stands; the next start goes on from there.
    """
    taken = Taken(store)
    try:
        found = _open(task, run_id, inputs, taken, options)
        if not isinstance(found, Opening):
            return found[0]
        try:
            return drive(_whole(found), found.run, found.call)
        except BaseException as error:  # noqa: BLE001 – translated at the door, none is swallowed
            outcome = told(found.run, error)
            taken.was_stopped = isinstance(outcome, RunInterrupted)
            raise outcome from outcome.__cause__
    finally:
        try:
            taken.give_back()
        finally:  # for nothing, unless a signal handler raised in the midst of it
            taken.give_back()


async def run_task_async(task: TaskSpec, run_id: str, inputs: Inputs | None, store: Store, options: RunOptions) -> Any:
    """As `run_task`, on the running event loop."""
    load("milepost.runtime.adrive", "milepost.runtime.amap")  # here: synchronous tasks need no asyncio
    from milepost.runtime.adrive import drive_async, outlived

    taken = Taken(store)
    try:
        found = _open(task, run_id, inputs, taken, options)
        if not isinstance(found, Opening):
            return found[0]
        try:
            return await outlived(drive_async(_whole(found), found.run, found.call), found.call)
        except BaseException as error:  # noqa: BLE001 – translated at the door, none is swallowed
            outcome = told(found.run, error)
            taken.was_stopped = isinstance(outcome, RunInterrupted)
            raise outcome from outcome.__cause__
    finally:
        try:
            taken.give_back()
        finally:  # for nothing, unless a signal handler raised in the midst of it
            taken.give_back()


def _whole(opening: Opening) -> Steps[Any]:
    if opening.run.snapshot.is_shadow:
        watch_over(opening.run)
    if opening.is_resume:
        yield from take_up_answers(opening.run, opening.world)
        yield from resumed(opening.run)
    return (yield from journey(opening.run, opening.call, opening.world))


# ── opening ─────────────────────────────────────────────────────────────────────────────────────────


def _open(
    task: TaskSpec, run_id: str, inputs: Inputs | None, taken: Taken, options: RunOptions
) -> Opening | tuple[Any]:
    store = taken.store
    if crash.armed is None:
        crash.arm_from(options.environ)
    run_id = checked_name("run id", run_id)
    check_unambiguous(task)
    clock: Clock = options.clock or SystemClock()
    encoded = _encoded_inputs(task, inputs)
    if inputs is not None:
        if not options.shadow:
            refuse_live(run_id)
        if task.shadow_first and not options.shadow and store.run(run_id) is None:
            _required(task, store, options.seal_key)
        now = format_time(clock.now())
        new = NewRun(run_id, task.name, run_id, key_name(options.seal_key), now, me(clock), options.shadow)
        taken.lease = lease = store.create_run(new)
        if lease is not None:
            return _first_start(task, lease, row_of_new(new), inputs, encoded, taken, options, clock)
    return _resume(task, run_id, inputs, encoded, taken, options, clock)


def _required(task: TaskSpec, store: Store, seal_key: bytes | None) -> Promoted | None:
    load("milepost.runtime.promoted")  # here: few tasks need one
    from milepost.runtime.promoted import required

    return required(task, store, seal_key)


def _encoded_inputs(task: TaskSpec, inputs: Inputs | None) -> bytes:
    if inputs is None:
        return b""
    try:
        bound = task.arguments.bind(inputs.args, dict(inputs.kwargs))
    except TypeError as error:
        raise MisuseError(reason=f"task {task.name}, inputs: {error}", hint=INPUTS_HINT) from None
    return task.arguments.round_trip(bound)


def _first_start(
    task: TaskSpec,
    lease: Lease,
    row: RunRow,
    inputs: Inputs,
    encoded: bytes,
    taken: Taken,
    options: RunOptions,
    clock: Clock,
) -> Opening:
    """Write the first record of a run. Crash: a run without records, which the same start begins again; or begun."""
    sealer = Sealer(lease.run_id, options.seal_key)
    opening = _opening(task, lease, Opened(row, sealer), taken, options, clock)
    opening.call.args, opening.call.kwargs = inputs.args, inputs.kwargs
    try:
        if task.shadow_first and not options.shadow:
            opening.run.promoted = _required(task, taken.store, options.seal_key)  # once more: it is held from here on
        record, artifacts = _run_started(task, encoded, opening.run)
        opening.run.journal.append((record,), artifacts)
    except BaseException as error:  # translated at the door, none is swallowed
        outcome = told(opening.run, error)
        if isinstance(outcome, StepFailed) and outcome is not error:
            raise  # nothing of the plan ran yet: it is no failure of the plan's
        raise outcome from outcome.__cause__
    return opening


def _run_started(task: TaskSpec, encoded: bytes, run: ActiveRun) -> tuple[RunStarted, list[Artifact]]:
    artifacts = [_kept(run, encoded)]
    sources = _input_sources(task, encoded, run)
    if sources is not None:
        artifacts.append(sources)
    record = RunStarted(
        at=format_time(run.clock.now()),
        task=task.name,
        target=task.target,
        folder=os.getcwd(),
        inputs=artifacts[0].pointer,
        inputs_fingerprint=fingerprint(encoded, run.seal_key),
        versions=task.versions(),
        family=run.run_id,
        agent=agent_of(run.options.environ, task.name),
        sources=sources.pointer if sources is not None else None,
        shadow=run.options.shadow,
        promotion=run.promoted.run_id if run.promoted is not None else None,
        limits=declared_limits(task),
        permissions=tuple(sorted(task.permissions or ())),
    )
    return record, artifacts


def _kept(run: ActiveRun, encoded: bytes) -> Artifact:
    if len(encoded) > ARTIFACT_ROW_MAX:
        return run.journal.artifacts.keep(encoded, "application/json")
    return beside(encoded)


def _input_sources(task: TaskSpec, encoded: bytes, run: ActiveRun) -> Artifact | None:
    """Observe the files among the inputs, so that a resume notices when they changed."""
    if not task.arguments.holds_paths:
        return None
    paths = [Path(path) for _, path in find_paths(task.arguments.decode(encoded))]
    seen = [observe(of_path(path).descriptor(), seal_key=run.seal_key) for path in paths]
    entries: list[Json] = [{"role": "read", **observation.to_json()} for observation in seen]
    return _kept(run, canonical(entries)) if entries else None


def _resume(
    task: TaskSpec,
    run_id: str,
    inputs: Inputs | None,
    encoded: bytes,
    taken: Taken,
    options: RunOptions,
    clock: Clock,
) -> Opening | tuple[Any]:
    store = taken.store
    row = row_of(store, run_id)
    if not row.shadow:
        refuse_live(run_id)
    if row.task != task.name:
        raise WrongTask(run_id=run_id, expected=row.task, found=task.name)
    if options.shadow != row.shadow and (inputs is not None or options.shadow):
        raise ShadowDiffers(run_id=run_id, found=_called(row.shadow), wanted=_called(options.shadow))
    if row.progress.status in ENDED:  # the row is a view: what the journal says counts
        opened = read_trusted(store, run_id, options.seal_key)
        if opened.refusal is not None or opened.snapshot.status in ENDED:
            return _recorded(task, opened, inputs, encoded, store)
    taken.lease = lease = take(store, run_id, clock, options.lease_s)
    return _held(task, lease, inputs, encoded, taken, options, clock)


def _called(shadow: bool) -> str:
    return "a shadow run" if shadow else "a live run"


def _held(
    task: TaskSpec,
    lease: Lease,
    inputs: Inputs | None,
    encoded: bytes,
    taken: Taken,
    options: RunOptions,
    clock: Clock,
) -> Opening | tuple[Any]:
    """Read a run anew under the lease and go on with it, unless its journal says that there is nothing to go on with.

    Raises: RefusedError when it cannot be trusted, never began, or has other inputs.
    """
    store = taken.store
    opened = read_trusted(store, lease.run_id, options.seal_key)
    if opened.refusal is not None:
        raise opened.refusal
    check_lease(opened, lease)
    if opened.snapshot.status in ENDED:
        return _recorded(task, opened, inputs, encoded, store)
    if opened.snapshot.started is None and inputs is not None and opened.row.family == lease.run_id:  # else half a fork
        return _first_start(task, lease, opened.row, inputs, encoded, taken, options, clock)
    if opened.snapshot.started is None:
        raise RunUnstarted(run_id=lease.run_id, location=store.location)
    _check_inputs(opened, inputs, encoded, store)
    opening = _opening(task, lease, opened, taken, options, clock)
    if opening.run.needs_promotion:
        load("milepost.runtime.promoted")
        from milepost.runtime.promoted import going_on

        opening.run.promoted, opening.world.promotion = going_on(opening.run)
    take_up(opening.run, opening.call)
    opening.is_resume = True
    return opening


def take_up(run: ActiveRun, call: RuntimeCall) -> None:
    """Give the plan the inputs it was started with; the chains inside verified steps are not read yet."""
    started = run.snapshot.started
    assert started is not None
    recorded = run.journal.artifacts.load(started.inputs, "inputs of the run")
    call.args, call.kwargs = run.task.arguments.spread(run.task.arguments.decode(recorded))
    run.unread = frozenset(path for path, step in run.snapshot.steps.items() if step.verified is not None)
    if run.task.limits is not None and not run.checking:
        count_unread(run)


def _opening(task: TaskSpec, lease: Lease, opened: Opened, taken: Taken, options: RunOptions, clock: Clock) -> Opening:
    store = taken.store
    witness = witness_of(store.store_id, lease.run_id, options.environ)
    journal = Journal(store, lease, opened, witness=witness, watch=options.watch)
    run = ActiveRun(run_id=lease.run_id, task=task, journal=journal, lease=lease, clock=clock, options=options)
    taken.copies = copies = copies_of(store, opened.row.family, options.environ)
    copies.take(lease, store.location)  # from here on no copy adds to what the witness saw
    world = world_of(task, opened, went_back(store, opened, witness), clock)
    taken.run = run
    KEEPER.add(run)
    return Opening(run, root_call(run), world, is_resume=False)


def world_of(task: TaskSpec, opened: Opened, behind: tuple[int, int] | None, clock: Clock) -> World:
    """Return what is known of the world when a run is opened; the six rules ask for the rest."""
    now = moment(clock)
    world = World(
        at=now.text,
        run_id=opened.row.run_id,
        moment=now,
        refusal=opened.refusal,
        answers=opened.answers,
        cancel=opened.row.cancel,
        ask_on_version_change=task.on_version_change == "ask",
        limits=task.limits,
    )
    if behind is not None:
        world.went_back_to, world.witnessed = behind
    return world


def root_call(run: ActiveRun) -> RuntimeCall:
    """Return the call of the task itself: what the journey carries out."""
    return RuntimeCall(
        spec=run.task,
        path="",
        branch=False,
        bound={},
        encoded=b"",
        fingerprint="",
        item_key=None,
        run=run,
        snapshot=run.snapshot,
    )


def _check_inputs(opened: Opened, inputs: Inputs | None, encoded: bytes, store: Store) -> None:
    """Refuse a start under a known run id with other inputs than it has. Raises: InputsDiffer."""
    started = opened.snapshot.started
    assert started is not None
    if inputs is None or digest(encoded) == started.inputs.digest:
        return
    recorded = Artifacts(store, opened.row.run_id, snapshot=opened.snapshot).load(started.inputs, "inputs of the run")
    changes = difference(parse(recorded), parse(encoded))
    raise InputsDiffer(run_id=opened.row.run_id, difference="; ".join(str(change) for change in changes[:3]))


def _recorded(task: TaskSpec, opened: Opened, inputs: Inputs | None, encoded: bytes, store: Store) -> tuple[Any]:
    """Return the recorded result of a run that is done. Raises: RunEnded when it ended otherwise."""
    if opened.refusal is not None:
        raise opened.refusal
    _check_inputs(opened, inputs, encoded, store)
    ended = opened.snapshot.ended
    if ended is None or ended.output is None or ended.status != RunStatus.DONE:
        raise RunEnded(run_id=opened.row.run_id, status=opened.snapshot.status)
    artifacts = Artifacts(store, opened.row.run_id, snapshot=opened.snapshot)
    return (task.output.decode(artifacts.load(ended.output, "result of the run")),)
