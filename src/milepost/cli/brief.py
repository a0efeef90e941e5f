"""`milepost brief`: verified facts about a run in at most 2,000 characters, to hand to a model."""

from __future__ import annotations

import click

from milepost.cli.handover import brief
from milepost.cli.opened import store_to_read
from milepost.cli.options import RUN, json_option
from milepost.cli.output import emit, say
from milepost.views.opened import read_trusted, stands


@click.command("brief")
@click.argument("run_id", metavar="RUN", type=RUN)
@json_option
def command(run_id: str, as_json: bool) -> int:
    """Say where a run stands in at most 2,000 characters, to hand to a model.

    Only what is verified or applied and durable counts as done. The text is fenced as data.

    \b
    Example:
      milepost brief october
    """
    store = store_to_read()
    opened = read_trusted(store, run_id)
    text = brief(opened, stands(store, opened.row).word)
    if as_json:
        emit({"run_id": run_id, "brief": text})
    else:
        say(text, lines=True)
    return 0
