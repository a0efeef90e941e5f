"""`milepost prune`: delete whole ended runs."""

from __future__ import annotations

import sys
from datetime import timedelta

import click

from milepost.cli.opened import the_store
from milepost.cli.options import RUN, json_option
from milepost.cli.output import emit, note, table
from milepost.config import A_TIME, time_span
from milepost.errors import MisuseError
from milepost.records.model import ENDED
from milepost.records.times import age
from milepost.runtime.opening import row_of
from milepost.runtime.standing import all_runs
from milepost.stores.contract import RunRow, Store
from milepost.views.opened import now, now_text
from milepost.views.words import ago, counted


class Age(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.2
    """A time span such as 30d, 12h, 4w, as `milepost.toml` has them."""

    name = "age"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        found = time_span(str(value))
        if found is None:
            self.fail(f"expected {A_TIME}, found {value!r}", param, ctx)
        return found


def _confirm(count: int) -> None:
    """Ask whether to go on. Raises: Abort when not, MisuseError when nobody is there to answer."""
    try:
        is_sure = click.confirm(f"Delete {counted(count, 'run')} for good?", err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise _nobody_asked(count) from None
    if not is_sure:
        raise click.Abort


def _nobody_asked(count: int) -> MisuseError:
    hint = "Say --yes as well, where there is no terminal and with --json."
    return MisuseError(reason=f"{counted(count, 'run')} would be deleted, and nobody can be asked", hint=hint)


@click.command("prune")
@click.argument("run_ids", metavar="[RUN]...", nargs=-1, type=RUN)
@click.option(
    "--older-than", type=Age(), metavar="AGE", help="Every run that ended longer ago, such as 30d, 12h, 90min."
)
@click.option("--yes", is_flag=True, help="Do it without asking.")
@json_option
def command(run_ids: tuple[str, ...], older_than: timedelta | None, yes: bool, as_json: bool) -> int:
    """Delete whole runs that are done, stopped or cancelled. Key claims and a line of audit for each stay.

    \b
    Example:
      milepost prune --older-than 30d --yes
    """
    store = the_store()
    if not run_ids and older_than is None:
        raise click.UsageError("Name runs, or give --older-than.")
    chosen = _chosen(store, run_ids, older_than)
    if chosen and not yes and not as_json:
        moment = now()
        rows = [(row.run_id, row.task, row.progress.status, ago(row.progress.at, moment)) for row in chosen]
        table(("run", "task", "ended", "last"), rows)
        _confirm(len(chosen))
    elif chosen and not yes:
        raise _nobody_asked(len(chosen))
    count = store.prune([row.run_id for row in chosen], now_text())
    if as_json:
        emit({"pruned": count, "runs": [row.run_id for row in chosen]})
    else:
        note(f"{counted(count, 'run')} deleted.")
    return 0


def _chosen(store: Store, run_ids: tuple[str, ...], older_than: timedelta | None) -> list[RunRow]:
    rows = [row_of(store, run_id) for run_id in run_ids] if run_ids else list(all_runs(store))
    going = [row.run_id for row in rows if row.progress.status not in ENDED]
    if run_ids and going:
        raise MisuseError(reason=f"only runs that have ended can be pruned; {', '.join(going)} can go on")
    moment = now()
    ended = [row for row in rows if row.progress.status in ENDED]
    if older_than is None:
        return ended
    return [row for row in ended if (passed := age(row.progress.at, moment)) is not None and passed > older_than]
