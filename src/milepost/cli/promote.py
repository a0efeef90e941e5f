"""`milepost promote`: turn a task from shadow to live, as a recorded, approved act."""

from __future__ import annotations

import click

from milepost.cli.carry_out import How, carry_out
from milepost.cli.load import load_task
from milepost.cli.opened import note_no_witness, the_store
from milepost.cli.options import TEXT, json_option
from milepost.cli.output import note
from milepost.shadow.promotion import case_for, promotion, promotion_id, said


@click.command("promote")
@click.argument("target", type=TEXT, metavar="FILE_OR_MODULE:TASK")
@json_option
def command(target: str, as_json: bool) -> int:
    """Turn a task from shadow to live, when its shadow runs agreed often enough and a person approves.

    The case is what `milepost shadow report … --keep` kept about shadow runs of the task as it is now. It is put to a
    person as a question (exit status 4); once that is approved, the same command finishes, if the case still holds. It
    lets live what `milepost map` prints now, no other role. What is recorded, and who approved it, is a run like any
    other: `milepost show`, `verify`, `audit`.

    \b
    Example:
      milepost promote plan.py:reconcile
    """
    task = load_task(target)
    store = the_store()
    case = case_for(task.spec, store)
    note_no_witness()
    note(said(case))
    return carry_out(promotion, promotion_id(case), ((case,), {}), store, How(wait=True, plain=True, as_json=as_json))
