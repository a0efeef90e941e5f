"""`milepost fork`: end a run and begin another one of its family from before a step."""

from __future__ import annotations

import os
import secrets
import shlex

import click

from milepost.cli.opened import the_store
from milepost.cli.options import NAME, RUN, TEXT, json_option
from milepost.cli.output import emit, note
from milepost.cli.recorded import started_task
from milepost.errors import MilepostError
from milepost.protocol.keys import NAME_LENGTH_MAX
from milepost.runtime.clock import SystemClock
from milepost.runtime.fork import fork_run
from milepost.runtime.opening import Opened
from milepost.stores.contract import Store
from milepost.views.opened import read_whole, seal_key


@click.command("fork")
@click.argument("run_id", metavar="RUN", type=RUN)
@click.option(
    "--from", "step", type=NAME, metavar="STEP", required=True, help="The path of the step or effect to begin before."
)
@click.option("--run-id", "new_id", type=TEXT, help="Name of the new run; RUN-fork-xxxx when left out.")
@json_option
def command(run_id: str, step: str, new_id: str | None, as_json: bool) -> int:
    """End a run and begin another one that keeps what was verified before STEP.

    Nothing applied in the family is sent again. So a run is forked once; after that, fork the newest of its family.
    It is also the way out of a run whose journal cannot be trusted: what can be trusted is kept, every effect after it
    is in doubt.

    \b
    Example:
      milepost fork october --from match --run-id october-b
    """
    store = the_store()
    _declare(store, read_whole(store, run_id))
    name = new_id if new_id is not None else f"{run_id[: NAME_LENGTH_MAX - 10]}-fork-{secrets.token_hex(2)}"
    fork_run(store, run_id, step, name, seal_key=seal_key(), clock=SystemClock(), environ=os.environ)
    kept = read_whole(store, name).snapshot
    if as_json:
        emit(
            {
                "run_id": name,
                "forked_from": run_id,
                "forked_at": step,
                "verified_count": kept.verified_count,
                "applied_count": kept.applied_count,
            }
        )
    else:
        note(f"run {name} keeps {kept.verified_count} verified and {kept.applied_count} applied of {run_id}.")
        note(f"`milepost resume {shlex.quote(name)}` goes on.")
    return 0


def _declare(store: Store, opened: Opened) -> None:
    """Import the run's task, so that it is known which of its effects share their keys with other runs."""
    started = opened.snapshot.started
    try:
        if started is not None:
            started_task(started, store, opened.row.run_id)
    except MilepostError as error:
        note(f'Its task cannot be imported, so open keys of scope="task" stay with {opened.row.run_id}: {error}')
