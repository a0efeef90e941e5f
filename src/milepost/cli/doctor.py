"""`milepost doctor`: examine the store, the clock and the folders around it. Changes nothing."""

from __future__ import annotations

import os
from dataclasses import asdict

import click

from milepost.cli.opened import store_to_read
from milepost.cli.options import json_option
from milepost.cli.output import emit, note, table
from milepost.cli.people import diagnosis
from milepost.errors import BadOption, RefusedError
from milepost.protocol.questions import counted
from milepost.records.seal import key_name
from milepost.records.times import age
from milepost.runtime.standing import all_runs
from milepost.runtime.witness import no_witness, witness_folder
from milepost.stores.contract import Diagnosis, Store
from milepost.views.opened import now, seal_key
from milepost.views.words import clock_time


@click.command("doctor")
@json_option
def command(as_json: bool) -> int:
    """Examine the store, the disk, the clock and the folders around it. Exit status 0 when all is well, else 3.

    \b
    Example:
      milepost doctor
    """
    store = store_to_read()
    found = [*store.check(), _clock(store), _witness(), _seal_key(store), diagnosis(store)]
    well = all(finding.ok for finding in found)
    status = 0 if well else RefusedError.exit_status
    if as_json:
        emit({"store": store.location, "ok": well, "findings": [asdict(finding) for finding in found]})
        return status
    note(f"store {store.location}")
    table(("check", "", "found"), [(f.check, "ok" if f.ok else "refused", f.found) for f in found])
    for finding in found:
        if not finding.ok and finding.hint:
            note(f"{finding.check}: {finding.hint}")
    return status


def _clock(store: Store) -> Diagnosis:
    newest = max((row.progress.at for row in all_runs(store)), default=None)
    moment = now()
    found = f"now {moment:%Y-%m-%d %H:%M:%S UTC}"
    if newest is None or age(newest, moment) is not None:
        return Diagnosis("clock", True, found)
    hint = "The clock ran backward: ages cannot be told, so open intents will be asked about. Set the clock."
    return Diagnosis("clock", False, f"{found}, but the newest record is of {clock_time(newest)}", hint)


def _witness() -> Diagnosis:
    folder, trouble = witness_folder(os.environ), no_witness(os.environ)
    if folder is None or trouble is not None:
        hint = (
            "Set XDG_STATE_HOME to a folder you can write: without a witness an older copy of the store is not noticed."
        )
        return Diagnosis("witness", False, f"none can be kept: {trouble}", hint)
    return Diagnosis("witness", True, f"{folder} ({'there' if folder.exists() else 'not yet there'})")


def _seal_key(store: Store) -> Diagnosis:
    sealed = {row.seal_name for row in all_runs(store)} - {None}
    try:
        given = key_name(seal_key())
    except BadOption as error:
        return Diagnosis("seal key", False, str(error), error.hint)
    is_set = "not set" if given is None else "one of them" if given in sealed else "set to another" if sealed else "set"
    hint = "Set MILEPOST_SEAL_KEY to the key those runs were started with, or they can be neither trusted nor refused."
    found = f"{counted(len(sealed), 'key')} in use, MILEPOST_SEAL_KEY is {is_set}"
    return Diagnosis("seal key", given in sealed or not sealed, found, hint)
