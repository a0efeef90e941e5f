"""`milepost verify`: prove everything a run's journal claims."""

from __future__ import annotations

import os
from dataclasses import asdict

import click

from milepost.cli.opened import store_to_read
from milepost.cli.options import RUN, json_option
from milepost.cli.output import emit, note, table
from milepost.errors import RefusedError, SealKeyMissing, UnprovenError
from milepost.runtime.opening import check_key, row_of
from milepost.runtime.verify import verify_run
from milepost.stores.contract import Store
from milepost.views.opened import seal_key


@click.command("verify")
@click.argument("run_id", metavar="RUN", type=RUN)
@json_option
def command(run_id: str, as_json: bool) -> int:
    """Prove every seal, digest and artifact of a run, or name what cannot be proven. Exit status 3 if anything is not,
    7 if it cannot be told because this is not the key that the run is sealed with.

    With MILEPOST_SEAL_KEY the seals cannot be forged by someone who can write to the store; without it they show
    damage and clumsy edits.

    \b
    Example:
      milepost verify october
    """
    store = store_to_read()
    missing = _missing_key(store, run_id)
    verdicts = verify_run(store, run_id, seal_key(), os.environ)
    proven = all(verdict.ok for verdict in verdicts)
    if as_json:
        told = {"cannot_tell": str(missing)} if missing else {}
        emit({"run_id": run_id, "ok": proven, **told, "verdicts": [asdict(verdict) for verdict in verdicts]})
    else:
        doubt = "cannot tell" if missing else "refused"
        table(("what", "", "found"), [(v.what, "ok" if v.ok else doubt, v.found) for v in verdicts])
    if missing:
        note(f"  → {missing.hint}")
        return UnprovenError.exit_status
    return 0 if proven else RefusedError.exit_status


def _missing_key(store: Store, run_id: str) -> SealKeyMissing | None:
    """Return why seals cannot be told here, None when this is the key of the run."""
    try:
        check_key(row_of(store, run_id), seal_key())
    except SealKeyMissing as error:
        return error
    return None
