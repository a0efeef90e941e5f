"""`milepost cancel`: ask a run to end."""

from __future__ import annotations

import shlex

import click

from milepost.cli.opened import me, the_store
from milepost.cli.options import RUN, TEXT, json_option
from milepost.cli.output import emit, note
from milepost.runtime.answering import ask_to_cancel
from milepost.runtime.opening import row_of
from milepost.views.opened import now_text, seal_key, stands


@click.command("cancel")
@click.argument("run_id", metavar="RUN", type=RUN)
@click.option("--note", "why", type=TEXT, default="", help="Why; kept in the audit.")
@json_option
def command(run_id: str, why: str, as_json: bool) -> int:
    """Ask a run to end: no new step starts, what runs ends, open intents are looked up or asked about first.

    A run that somebody works on hears of it within a second; another one ends when it is resumed.

    \b
    Example:
      milepost cancel october --note "wrong month"
    """
    store = the_store()
    ask_to_cancel(store, run_id, seal_key=seal_key(), by=me(), at=now_text(), note=why)
    standing = stands(store, row_of(store, run_id))
    if as_json:
        emit({"run_id": run_id, "asked": True, "stands": standing.word})
    elif standing.word == "running":
        note(f"run {run_id} is asked to end; {standing.holder} stops at its next boundary.")
    else:
        note(f"run {run_id} is asked to end; nobody works on it, `milepost resume {shlex.quote(run_id)}` ends it.")
    return 0
