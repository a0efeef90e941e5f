"""Opens the store a command means and reads runs of it. Inspecting needs no lease and blocks nobody."""

from __future__ import annotations

import getpass
import os
import platform
from datetime import datetime
from pathlib import Path

from milepost.api import default_store
from milepost.cli.output import note
from milepost.errors import RefusedError
from milepost.protocol.snapshot import format_time
from milepost.runtime.clock import SystemClock
from milepost.runtime.opening import Opened, read_snapshot
from milepost.runtime.standing import Standing, standing
from milepost.runtime.trust import check_row
from milepost.runtime.witness import no_witness
from milepost.stores.contract import RunRow, Store
from milepost.stores.locate import locate


def the_store(*, create: bool = False) -> Store:
    """Return the store found from the working folder or named by MILEPOST_STORE. Raises: StoreMissing and its like."""
    return default_store(create=create, environ=os.environ)


def store_to_start_in() -> Store:
    """Return the store a run is started in, made when there is none: it says so, for a typo makes one, too."""
    found = locate(Path.cwd(), os.environ)
    is_new = found is None or not found.exists()
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


def seal_key() -> bytes | None:
    """Return the key of MILEPOST_SEAL_KEY, None without one."""
    value = os.environ.get("MILEPOST_SEAL_KEY")
    return value.encode("utf-8") if value else None


def now() -> datetime:
    return SystemClock().now()


def now_text() -> str:
    return format_time(now())


def read_whole(store: Store, run_id: str) -> Opened:
    """Read everything a run's journal says that can be trusted. Raises: RunUnknown; a refusal is returned with it."""
    opened = read_snapshot(store, run_id, seal_key(), every_chain=True)
    if opened.refusal is None and opened.snapshot.started is not None:
        try:
            check_row(opened)
        except RefusedError as refusal:
            opened.refusal = refusal
    return opened


def stands(store: Store, row: RunRow) -> Standing:
    """Say where a run stands now."""
    return standing(store, row, seal_key(), now())


def me() -> str:
    """Name who gives an answer here: user@host."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{platform.node()}"
