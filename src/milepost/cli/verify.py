"""`milepost verify`: prove everything a run's journal claims."""

from __future__ import annotations

import os
from dataclasses import asdict

import click

from milepost.cli.opened import the_store
from milepost.cli.options import RUN, json_option
from milepost.cli.output import emit, table
from milepost.errors import RefusedError
from milepost.runtime.verify import verify_run
from milepost.views.opened import seal_key


@click.command("verify")
@click.argument("run_id", metavar="RUN", type=RUN)
@json_option
def command(run_id: str, as_json: bool) -> int:
    """Prove every seal, digest and artifact of a run, or name what cannot be proven. Exit status 3 if anything is not.

    With MILEPOST_SEAL_KEY the seals cannot be forged by someone who can write to the store; without it they show
    damage and clumsy edits.

    \b
    Example:
      milepost verify october
    """
    verdicts = verify_run(the_store(), run_id, seal_key(), os.environ)
    proven = all(verdict.ok for verdict in verdicts)
    if as_json:
        emit({"run_id": run_id, "ok": proven, "verdicts": [asdict(verdict) for verdict in verdicts]})
    else:
        table(("what", "", "found"), [(v.what, "ok" if v.ok else "refused", v.found) for v in verdicts])
    return 0 if proven else RefusedError.exit_status
