"""`milepost resume`: go on with a run, with all that can go on, or only say what that would do."""

from __future__ import annotations

import os
from pathlib import Path

import click

from milepost.cli.carry_out import How, carry_out, result_data
from milepost.cli.check import check
from milepost.cli.load import AnyTask, load_task
from milepost.cli.opened import read_whole, row_of, seal_key, stands, the_store
from milepost.cli.options import RUN, json_option, wait_options
from milepost.cli.output import emit, note, say
from milepost.cli.resume_all import resume_all
from milepost.errors import MisuseError, RunUnknown
from milepost.records.model import RunStatus
from milepost.runtime.keeping import Artifacts
from milepost.runtime.opening import Opened, read_snapshot
from milepost.runtime.standing import unfinished
from milepost.stores.contract import Store


@click.command("resume")
@click.argument("run_id", metavar="[RUN]", required=False, type=RUN)
@click.option("--all", "every", is_flag=True, help="Resume every run that died, was interrupted, is answered or due.")
@click.option("--check", "only_check", is_flag=True, help="Print the six rules and what each found; change nothing.")
@wait_options
@json_option
def command(run_id: str | None, every: bool, only_check: bool, no_wait: bool, plain: bool, as_json: bool) -> int:
    """Go on with a run where it stood: nothing that was done is repeated, nothing is skipped.

    Without RUN it resumes the only run that is unfinished. It works in the folder the run was started in, with the
    task it was started with. --all goes through the runs one after another and exits with the first status that is
    not 0. --check exits with 0 when a resume would go on, 3 when it would be refused, 4 when it would ask.

    \b
    Example:
      milepost resume october --check
      milepost resume october
    """
    store, how = the_store(), How(not no_wait, plain, as_json)
    if every:
        if run_id is not None or only_check:
            raise click.UsageError("--all goes with neither RUN nor --check.")
        return resume_all(store, how)
    chosen = run_id if run_id is not None else only_unfinished(store)
    if chosen is None:
        return _nothing(as_json)
    return resume_one(store, chosen, how, only_check=only_check)


def _nothing(as_json: bool) -> int:
    if as_json:
        emit({"runs": []})
    else:
        note("Nothing to resume: every run of this store has ended.")
    return 0


def only_unfinished(store: Store) -> str | None:
    """Return the one unfinished run, None without any. Raises: MisuseError listing them when there are several."""
    rows = unfinished(store)
    if len(rows) > 1:
        listed = ", ".join(f"{row.run_id} ({stands(store, row).word})" for row in rows[-20:])
        raise MisuseError(reason=f"{len(rows)} runs are unfinished; name one of them, or give --all: {listed}")
    return rows[0].run_id if rows else None


def resume_one(store: Store, run_id: str, how: How, *, only_check: bool) -> int:
    """Resume one run, or check it; tell the recorded result of one that is done."""
    row = row_of(store, run_id)
    if row.progress.status is RunStatus.DONE and not only_check:
        return _already_done(store, run_id, how)
    task = recorded_task(store, run_id, opened=read_snapshot(store, run_id, seal_key()), checking=only_check)
    return check(task, run_id, store, as_json=how.as_json) if only_check else carry_out(task, run_id, None, store, how)


def recorded_task(store: Store, run_id: str, *, opened: Opened, checking: bool = False) -> AnyTask:
    """Go to the folder a run was started in and import its task. Raises: what keeps it from being trusted or found."""
    started = opened.snapshot.started
    if opened.refusal is not None and (started is None or not checking):
        raise opened.refusal
    if started is None:
        raise RunUnknown(run_id=run_id, location=f"{store.location} (it died before its first record)")
    if Path(started.folder).is_dir():
        os.chdir(started.folder)
    else:
        note(f"The folder of the run is gone: {started.folder}; going on in {Path.cwd()}.")
    return load_task(started.target)


def _already_done(store: Store, run_id: str, how: How) -> int:
    opened = read_whole(store, run_id)
    if opened.refusal is not None:
        raise opened.refusal
    ended = opened.snapshot.ended
    assert ended is not None
    assert ended.output is not None
    data = Artifacts(store, run_id, snapshot=opened.snapshot).load(ended.output, "result of the run")
    result = result_data(data, ended.output.media_type)
    if how.as_json:
        emit({"run_id": run_id, "task": opened.row.task, "status": "done", "result": result})
        return 0
    note(f"run {run_id} is done already; this is its recorded result.")
    if isinstance(result, str):
        say(result, lines=True)
    elif result is not None:
        emit(result)
    return 0
