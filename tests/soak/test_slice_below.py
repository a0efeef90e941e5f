"""A slice of what `make soak` does below the library: calls, files, disks, memory and clocks that fail or end."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import cast

import pytest
from tally import Harness, Missing, tallied

SEED = 20261130
SLICES = {
    "syscalls": 8,
    "call_faults": 6,
    "vfs": 5,
    "power_cut": 8,
    "ext4_cut": 5,
    "resources": 6,
    "clocks": 5,
    "demo_calls": 5,
}
"""Harness -> seconds. A seeded sample: the same points in the same order, as far as the time reaches."""


@pytest.mark.slow
@pytest.mark.parametrize("name", SLICES)
def test_nothing_is_repeated_skipped_stuck_or_falsely_verified(name: str, folder: Path) -> None:
    harness = cast(Harness, importlib.import_module(name))
    try:
        tally = tallied(harness, name, folder, seconds=SLICES[name], seed=SEED)
    except Missing as missing:
        pytest.skip(str(missing))
    assert tally.tried > 0
    assert tally.clean, tally.line()
