"""`resume --check`: the six rules and what each found. Changes nothing, takes no lease, asks no provider.

Code between steps is replayed up to the first call without a checkpoint: that call is what a resume does next.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from milepost.errors import MilepostError
from milepost.protocol.decide import World
from milepost.protocol.failure import error_record
from milepost.protocol.findings import Finding, findings
from milepost.protocol.ops import Body, Ended, Steps
from milepost.protocol.snapshot import format_time
from milepost.protocol.spec import EffectSpec, TaskSpec
from milepost.records.model import ENDED
from milepost.runtime.active import ActiveRun, RunOptions
from milepost.runtime.adrive import drive_async
from milepost.runtime.clock import SystemClock
from milepost.runtime.drive import drive
from milepost.runtime.journal import Journal
from milepost.runtime.leases import me
from milepost.runtime.looking import Reached
from milepost.runtime.opening import Opened, went_back
from milepost.runtime.registry import spec_of
from milepost.runtime.scope import RuntimeCall
from milepost.runtime.start import root_call
from milepost.runtime.trust import read_trusted
from milepost.runtime.witness import witness_of
from milepost.runtime.world import check_sources, check_versions
from milepost.stores.contract import Lease, Store


def check_run(task: TaskSpec, run_id: str, store: Store, options: RunOptions) -> list[Finding]:
    """Return one finding per rule for a run as it stands now. Raises: RunUnknown."""
    opened = read_trusted(store, run_id, options.seal_key)
    clock = options.clock or SystemClock()
    world = World(at=format_time(clock.now()), run_id=run_id, ask_on_version_change=task.on_version_change == "ask")
    world.refusal = opened.refusal
    behind = went_back(store, opened, witness_of(store.store_id, run_id, options.environ))
    if behind is not None:
        world.went_back_to, world.witnessed = behind
    if opened.refusal is not None or opened.snapshot.started is None:
        return findings(opened.snapshot, world)
    run, call = _looking(task, opened, store, replace(options, clock=clock))
    try:
        world.sources = drive(check_sources(run.snapshot), run, call)
        world.versions = check_versions(run.snapshot, task.versions())
        following = "" if opened.row.progress.status in ENDED or run.snapshot.questions else _following(run, call)
    except MilepostError as error:
        following = f"{type(error).code}: {error}"
    return findings(run.snapshot, world, following, _declared(run))


def _declared(run: ActiveRun) -> dict[str, EffectSpec]:
    """Return the effects with an open intent by path, as far as the code says which they are."""
    found = {state.path: spec_of(state.path, send.intent.versions) for state, send in run.snapshot.open_intents()}
    return {path: spec for path, spec in found.items() if isinstance(spec, EffectSpec)}


def _looking(task: TaskSpec, opened: Opened, store: Store, options: RunOptions) -> tuple[ActiveRun, RuntimeCall]:
    assert options.clock is not None
    run_id = opened.row.run_id
    lease = Lease(run_id, 0, me(options.clock))
    journal = Journal(
        store,
        lease,
        opened.sealer,
        opened.snapshot,
        head=opened.head,
        chains=opened.chains,
        counts=opened.counts,
        witness=None,
        watch=None,
    )
    run = ActiveRun(run_id=run_id, task=task, journal=journal, lease=lease, clock=options.clock, options=options)
    run.checking = True
    run.unread = frozenset(p for p, s in opened.snapshot.steps.items() if s.verified is not None)
    started = opened.snapshot.started
    assert started is not None
    call = root_call(run)
    recorded = journal.artifacts.load(started.inputs, "inputs of the run")
    call.args, call.kwargs = task.arguments.spread(task.arguments.decode(recorded))
    return run, call


def _following(run: ActiveRun, call: RuntimeCall) -> str:
    """Replay the plan up to the first call without a checkpoint and name it."""
    ended: Ended = asyncio.run(drive_async(_only_body(), run, call)) if run.task.is_async else _replayed(run, call)
    if isinstance(ended.error, Reached):
        return ended.error.what
    if ended.error is not None:
        return f"the code between steps raises {error_record(ended.error)}"
    return "the end of the plan" if not ended.uncalled else f"would ask: {', '.join(ended.uncalled)} not called again"


def _only_body() -> Steps[Any]:
    return (yield Body())


def _replayed(run: ActiveRun, call: RuntimeCall) -> Ended:
    ended: Ended = drive(_only_body(), run, call)
    return ended
