"""`milepost permissions`: what a task holds against what its effects used, of a run or over time."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import click

from milepost.cli.opened import store_to_read
from milepost.cli.options import RUN, TEXT, json_option
from milepost.cli.output import emit, note, say, table
from milepost.errors import RefusedError
from milepost.runtime.opening import row_of
from milepost.runtime.standing import all_runs
from milepost.stores.contract import RunRow, Store
from milepost.views.opened import seal_key
from milepost.views.permissions import Permission, Permissions, permissions_of
from milepost.views.words import clock_time, counted

HEADERS = ("permission", "stands", "held in", "used", "last used", "refused", "effects")


@click.command("permissions")
@click.argument("run_id", metavar="[RUN]", required=False, type=RUN)
@click.option("--task", type=TEXT, help="Over the runs of this task; without RUN and --task: of every task.")
@click.option("--limit", type=click.IntRange(1), default=1000, show_default=True, help="At most so many runs.")
@json_option
def command(run_id: str | None, task: str | None, limit: int, as_json: bool) -> int:
    """Show which permissions were held, used, never used, and refused.

    A permission that no run ever used can be taken away; one that was refused was wanted by an effect and not held:
    nothing was sent. A run that cannot be trusted is named and not counted (exit status 3).

    \b
    Example:
      milepost permissions --task reconcile
    """
    store = store_to_read()
    found = permissions_of(store, _rows(store, run_id, task, limit), seal_key())
    if as_json:
        emit({"tasks": [one.to_json() for one in found]})
    else:
        _say(found, store)
    return RefusedError.exit_status if any(one.untrusted for one in found) else 0


def _rows(store: Store, run_id: str | None, task: str | None, limit: int) -> Iterable[RunRow]:
    if run_id is not None:
        return [row_of(store, run_id)]
    return islice(all_runs(store, task=task), limit)


def _say(found: list[Permissions], store: Store) -> None:
    if not found:
        note(f"No runs in {store.location}.")
    for one in found:
        say(f"task {one.task}, {counted(one.runs, 'run')}")
        if one.by_name:
            table(HEADERS, [_line(permission) for permission in one.listed()])
        else:
            say("  no permission was held, used or refused")
        for run_id, why in one.untrusted.items():
            note(f"not counted: {run_id}: {why}")


def _line(p: Permission) -> tuple[object, ...]:
    used = f"{p.used}" + (f" + {p.shadowed} in shadow" if p.shadowed else "")
    last = clock_time(p.used_at) if p.used_at else ""
    return (p.name, p.stands, counted(p.held, "run"), used, last, p.refused or "", ", ".join(sorted(p.effects)))
