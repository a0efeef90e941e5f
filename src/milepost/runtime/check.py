"""`resume --check`: the six rules and what each found. Changes nothing, takes no lease, asks no provider.

Code between steps is replayed up to the first call without a checkpoint: that call is what a resume does next.
"""

from __future__ import annotations

from typing import Any

from milepost.errors import MilepostError, WrongTask
from milepost.protocol.decide import EnterAnswers, World, decide
from milepost.protocol.failure import error_record
from milepost.protocol.findings import END_OF_PLAN, Finding, findings
from milepost.protocol.fold import fold_record
from milepost.protocol.ops import Artifact, Body, Ended, Steps
from milepost.protocol.spec import EffectSpec, TaskSpec
from milepost.records.model import ENDED
from milepost.runtime.active import ActiveRun, RunOptions
from milepost.runtime.clock import Clock, SystemClock
from milepost.runtime.drive import drive
from milepost.runtime.guarded import watch_over
from milepost.runtime.journal import Journal
from milepost.runtime.journey import entered, resumption
from milepost.runtime.leases import me
from milepost.runtime.looking import Reached
from milepost.runtime.opening import Opened, went_back
from milepost.runtime.promoted import going_on
from milepost.runtime.registry import spec_of
from milepost.runtime.scope import RuntimeCall
from milepost.runtime.start import root_call, take_up, world_of
from milepost.runtime.trust import read_trusted
from milepost.runtime.witness import witness_of
from milepost.runtime.world import check_sources, check_versions
from milepost.stores.contract import Lease, Store


def check_run(task: TaskSpec, run_id: str, store: Store, options: RunOptions) -> list[Finding]:
    """Return one finding per rule for a run as it stands now. Raises: RunUnknown, WrongTask."""
    opened = read_trusted(store, run_id, options.seal_key)
    if opened.row.task != task.name:
        raise WrongTask(run_id=run_id, expected=opened.row.task, found=task.name)
    clock = options.clock or SystemClock()
    behind = went_back(store, opened, witness_of(store.store_id, run_id, options.environ))
    world = world_of(task, opened, behind, clock)
    if opened.refusal is not None or opened.snapshot.started is None:
        return findings(opened.snapshot, world)
    run, call = _looking(task, opened, store, options, clock)
    count = _go_on(run, world, opened)
    take_up(run, call)
    try:
        world.sources = drive(check_sources(run.snapshot), run, call)
        if run.needs_promotion:
            run.promoted, world.promotion = going_on(run)
        world.versions = check_versions(run.snapshot, task.versions(), promotion=world.promotion)
        s = run.snapshot
        following = "" if s.status in ENDED or s.stopped or s.questions else _following(run, call)
    except MilepostError as error:
        following = f"{type(error).code}: {error}"
    return findings(run.snapshot, world, following, _declared(run), count)


def _go_on(run: ActiveRun, world: World, opened: Opened) -> int:
    """Fold in what a resume writes before it decides, and write nothing: answers given since, and that it goes on.

    Return how many answers.
    """
    s, count = run.snapshot, 0
    read = s.record_count
    while isinstance(decision := decide(s, world), EnterAnswers):
        for question, answer in decision.answers:
            carried: list[Artifact] = []
            fold_record(s, entered(question.question_id, answer, world.at, carried))
            opened.checked.update({kept.pointer.digest: kept.data for kept in carried if kept.data is not None})
            count += 1
    if s.status not in ENDED and not s.questions:
        assert world.moment is not None
        fold_record(s, resumption(run, world.moment))
    s.record_count = read
    return count


def _declared(run: ActiveRun) -> dict[str, EffectSpec]:
    """Return the effects with an open intent by path, as far as the code says which they are."""
    found = {state.path: spec_of(state.path, send.intent.versions) for state, send in run.snapshot.open_intents()}
    return {path: spec for path, spec in found.items() if isinstance(spec, EffectSpec)}


def _looking(
    task: TaskSpec, opened: Opened, store: Store, options: RunOptions, clock: Clock
) -> tuple[ActiveRun, RuntimeCall]:
    """Return a run that is only looked at: under a lease that nobody gave, whose token could write nothing."""
    lease = Lease(opened.row.run_id, 0, me(clock))
    journal = Journal(store, lease, opened)
    run = ActiveRun(run_id=lease.run_id, task=task, journal=journal, lease=lease, clock=clock, options=options)
    run.checking = True
    if run.snapshot.is_shadow:
        watch_over(run)
    return run, root_call(run)


def _following(run: ActiveRun, call: RuntimeCall) -> str:
    """Replay the plan up to the first call without a checkpoint and name it."""
    ended: Ended = _on_a_loop(_only_body(), run, call) if run.task.is_async else drive(_only_body(), run, call)
    if isinstance(ended.error, Reached):
        return ended.error.what
    if ended.error is not None:
        return f"the code between steps raises {error_record(ended.error)}"
    return END_OF_PLAN if not ended.uncalled else f"would ask: {', '.join(ended.uncalled)} not called again"


def _only_body() -> Steps[Any]:
    return (yield Body())


def _on_a_loop(protocol: Steps[Any], run: ActiveRun, call: RuntimeCall) -> Any:
    import asyncio  # here: synchronous tasks need none of it

    from milepost.runtime.adrive import drive_async

    return asyncio.run(drive_async(protocol, run, call))
