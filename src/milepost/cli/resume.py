"""`milepost resume`: go on with a run, with all that can go on, or only say what that would do."""

from __future__ import annotations

import click

from milepost.cli.carry_out import How, carry_out
from milepost.cli.check import check, check_refused
from milepost.cli.opened import note_no_witness, store_to_read, the_store
from milepost.cli.options import RUN, TEXT, json_option, wait_options
from milepost.cli.output import say_no_runs
from milepost.cli.recorded import recorded_task, tell_result
from milepost.cli.resume_all import resume_all
from milepost.errors import MisuseError
from milepost.records.model import RunStatus
from milepost.runtime.opening import read_snapshot
from milepost.runtime.standing import unfinished
from milepost.stores.contract import Store
from milepost.views.opened import seal_key, stands


@click.command("resume")
@click.argument("run_id", metavar="[RUN]", required=False, type=RUN)
@click.option("--all", "every", is_flag=True, help="Resume every run that died, was interrupted, is answered or due.")
@click.option("--check", "only_check", is_flag=True, help="Print the six rules and what each found; change nothing.")
@click.option(
    "--task", "named", type=TEXT, metavar="FILE_OR_MODULE:TASK", help="Where its task is now, when it was moved."
)
@wait_options
@json_option
def command(
    run_id: str | None,
    every: bool,
    only_check: bool,
    named: str | None,
    no_wait: bool,
    plain: bool,
    as_json: bool,
) -> int:
    """Go on with a run where it stood: nothing that was done is repeated, nothing is skipped.

    Without RUN it resumes the only run that is unfinished. It works in the folder the run was started in, with the
    task it was started with; if the project was moved or copied with its store, in the folder it is in now. --all goes
    through the runs one after another and exits with the first status that is not 0. --check exits with 0 when a resume
    would go on, 3 when it would be refused, 4 when it would ask.

    \b
    Example:
      milepost resume october --check
      milepost resume october
    """
    store = store_to_read() if only_check else the_store()
    how = How(not no_wait, plain, as_json)
    if not only_check:
        note_no_witness()
    if every:
        if run_id is not None or only_check or named is not None:
            raise click.UsageError("--all goes with none of RUN, --check and --task.")
        return resume_all(store, how)
    chosen = run_id if run_id is not None else only_unfinished(store)
    if chosen is None:
        return say_no_runs("Nothing to resume: every run of this store has ended.", as_json=as_json)
    return resume_one(store, chosen, how, only_check=only_check, named=named)


def only_unfinished(store: Store) -> str | None:
    """Return the one unfinished run, None without any. Raises: MisuseError listing them when there are several."""
    rows = unfinished(store)
    if len(rows) > 1:
        listed = ", ".join(f"{row.run_id} ({stands(store, row).word})" for row in rows[-20:])
        raise MisuseError(reason=f"{len(rows)} runs are unfinished; name one of them, or give --all: {listed}")
    return rows[0].run_id if rows else None


def resume_one(store: Store, run_id: str, how: How, *, only_check: bool, named: str | None = None) -> int:
    """Resume one run, or check it; tell the recorded result of one that is done."""
    opened = read_snapshot(store, run_id, seal_key())
    if opened.snapshot.status is RunStatus.DONE and not only_check:
        return tell_result(store, run_id, as_json=how.as_json)
    if only_check and opened.refusal is not None:
        return check_refused(opened, as_json=how.as_json)
    task = recorded_task(store, opened, named=named)
    return check(task, run_id, store, as_json=how.as_json) if only_check else carry_out(task, run_id, None, store, how)
