"""Opens the store a command means and reads runs of it. Inspecting needs no lease and blocks nobody."""

from __future__ import annotations

import grp
import os
import platform
import pwd
from pathlib import Path

from milepost.api import default_store
from milepost.cli.output import note
from milepost.errors import StoreUnavailable
from milepost.records.identity import Identity
from milepost.runtime.witness import no_witness
from milepost.stores.contract import Store
from milepost.stores.locate import locate, open_store
from milepost.stores.sqlite.faults import is_full


def the_store(*, create: bool = False) -> Store:
    """Return the store found from the working folder or named by MILEPOST_STORE. Raises: StoreMissing and its like."""
    return default_store(create=create, environ=os.environ)


def store_to_read() -> Store:
    """Return the store a command only looks at, on a full disk, too. Raises: as `the_store`."""
    try:
        return the_store()
    except StoreUnavailable as error:
        if not is_full(error):
            raise
        store = open_store(create=False, read_only=True)
        note("The disk is full: the store can be looked at, nothing is written to it.")
        return store


def store_to_start_in() -> Store:
    """Return the store a run is started in, made when there is none: it says so, for a typo makes one, too."""
    found = locate(Path.cwd(), os.environ)
    is_new = found is None or not os.path.exists(found)  # what cannot be looked at is told as it is opened
    store = the_store(create=True)
    if is_new:
        note(f"new store {store.location}")
    return store


def note_no_witness() -> None:
    """Say when this machine cannot keep a witness: a run goes on without one, but not in silence."""
    trouble = no_witness(os.environ)
    if trouble is not None:
        note(
            f"no witness: {trouble}; if the store were an older copy, nobody would notice. `milepost doctor` says more."
        )


def me() -> str:
    """Name the account this process runs under: user@host. By its number, for anybody can set USER."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = str(os.getuid())
    return f"{user}@{platform.node()}"


def whoami() -> Identity:
    """Return who gives an answer here: the account this process runs under, with its groups."""
    return Identity(me(), tuple(sorted({name for name in map(_group, os.getgroups()) if name})), door="cli")


def _group(number: int) -> str | None:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return None  # a number without a name in this system: nobody can have named it in approvers=
