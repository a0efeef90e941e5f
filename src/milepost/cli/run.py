"""`milepost run`: start a run of a task, or go on with the one of this id."""

from __future__ import annotations

import os
import secrets

import click

from milepost.cli.carry_out import How, carry_out
from milepost.cli.inputs import parse_inputs
from milepost.cli.load import load_task
from milepost.cli.opened import note_no_witness, store_to_start_in
from milepost.cli.options import RUN, TEXT, json_option, wait_options
from milepost.protocol.keys import checked_name
from milepost.runtime.surroundings import check_surroundings
from milepost.views.opened import now, seal_key

TASK_LENGTH_MAX = 150
"""Characters of a task's name that go into a run id made here."""


@click.command("run")
@click.argument("target", type=TEXT, metavar="FILE_OR_MODULE:TASK")
@click.argument("inputs", type=TEXT, metavar="[NAME=VALUE]...", nargs=-1)
@click.option("--run-id", type=RUN, help="Name of the run; the same name again goes on with it.")
@click.option("--shadow", is_flag=True, help="Send nothing: record every effect that would have been sent.")
@wait_options
@json_option
def command(
    target: str, inputs: tuple[str, ...], run_id: str | None, shadow: bool, no_wait: bool, plain: bool, as_json: bool
) -> int:
    """Start a run of a task, or go on with the one of this id.

    A value is read as JSON where that fits the input's type, else as the text itself. Progress goes to stderr, the
    result to stdout. A --shadow run is one for ever: it cannot go on as a live one, nor a live one as a shadow.

    \b
    Example:
      milepost run plan.py:reconcile month=2026-10 --run-id october
      milepost run plan.py:reconcile month=2026-10 --shadow
    """
    task = load_task(target)
    name = checked_name("run id", run_id if run_id is not None else new_run_id(task.spec.name))
    given = parse_inputs(task.spec, inputs)
    seal_key()  # like the surroundings: refused before a store is made
    check_surroundings(task.spec, os.environ)
    store = store_to_start_in()
    note_no_witness()
    return carry_out(task, name, given, store, How(not no_wait, plain, as_json, shadow))


def new_run_id(task: str) -> str:
    """Make a run id: TASK-YYYYMMDD-HHMMSS-xxxx, in UTC."""
    return f"{task[:TASK_LENGTH_MAX].rstrip()}-{now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
