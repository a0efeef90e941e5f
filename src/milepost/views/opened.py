"""Reads a run for people: its whole journal, where it stands now; by this machine's clock and key. Needs no lease."""

from __future__ import annotations

import os
from datetime import datetime

from milepost.errors import RefusedError
from milepost.records.seal import seal_key_in
from milepost.records.times import format_time
from milepost.runtime.clock import SystemClock
from milepost.runtime.opening import Opened, read_snapshot
from milepost.runtime.standing import Standing, standing
from milepost.runtime.trust import check_row
from milepost.stores.contract import RunRow, Store


def seal_key() -> bytes | None:
    """Return the key of MILEPOST_SEAL_KEY, None without one. Raises: BadOption when it is too short to be one."""
    return seal_key_in(os.environ)


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


def read_trusted(store: Store, run_id: str) -> Opened:
    """Read everything a run's journal says. Raises: RunUnknown; the refusal of a run that cannot be trusted."""
    opened = read_whole(store, run_id)
    if opened.refusal is not None:
        raise opened.refusal
    return opened


def stands(store: Store, row: RunRow) -> Standing:
    """Say where a run stands now."""
    return standing(store, row, seal_key(), now())
