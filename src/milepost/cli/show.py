"""`milepost show`: in one minute, what was done, by which versions, what is open and what comes next."""

from __future__ import annotations

import click

from milepost.cli.checkpoint import say_checkpoint
from milepost.cli.opened import store_to_read
from milepost.cli.options import NAME, RUN, json_option
from milepost.cli.output import emit, say, say_no_runs, table
from milepost.cli.overview import header_lines, next_lines, open_lines
from milepost.errors import RefusedError
from milepost.runtime.opening import Opened
from milepost.runtime.standing import Standing, all_runs
from milepost.stores.contract import Store
from milepost.views.checkpoint import checkpoint_object
from milepost.views.errors import error_object
from milepost.views.opened import read_whole, stands
from milepost.views.overview import overview_object
from milepost.views.steps import HEADERS, shown_rows, steps


@click.command("show")
@click.argument("run_id", metavar="[RUN]", required=False, type=RUN)
@click.option(
    "--step", "path", type=NAME, metavar="PATH", help="Show one step or effect in full, with its output and sources."
)
@click.option("--all", "every", is_flag=True, help="Show every item of a .map instead of counting equal ones.")
@json_option
def command(run_id: str | None, path: str | None, every: bool, as_json: bool) -> int:
    """Show what a run has done, what is open and what comes next. Without RUN: the newest one.

    \b
    Example:
      milepost show october
      milepost show october --step match
    """
    store = store_to_read()
    chosen = run_id if run_id is not None else _newest(store)
    if chosen is None:
        return say_no_runs(f"No runs in {store.location}.", as_json=as_json)
    opened = read_whole(store, chosen)
    if path is not None:
        return _one_step(store, opened, path, as_json)
    return _whole(store, opened, stands(store, opened.row), every=every, as_json=as_json)


def _newest(store: Store) -> str | None:
    return next((row.run_id for row in all_runs(store)), None)


def _whole(store: Store, opened: Opened, standing: Standing, *, every: bool, as_json: bool) -> int:
    if as_json:
        refusal = {"error": error_object(opened.refusal)} if opened.refusal is not None else {}
        emit({**overview_object(store, opened, standing), **refusal})
        return RefusedError.exit_status if opened.refusal is not None else 0
    for line in header_lines(opened, standing):
        say(line)
    rows = shown_rows(steps(opened), every=every)
    if rows:
        say()
        table(HEADERS, rows)
    for line in (*open_lines(store, opened), *next_lines(store, opened, standing)):
        say(line)
    if opened.refusal is not None:
        raise opened.refusal
    return 0


def _one_step(store: Store, opened: Opened, path: str, as_json: bool) -> int:
    found = checkpoint_object(store, opened, path)
    if as_json:
        emit(found)
    else:
        say_checkpoint(found)
    return 0
