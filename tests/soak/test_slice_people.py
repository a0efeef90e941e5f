"""A slice of what `make soak` does about schedules and people at once: orders, starters, sleepers, every door."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import cast

import crashresume_bridge
import pytest
from tally import Harness, tallied

SEED = 20261130
SLICES = {"schedules": 10, "machine": 8, "starters": 6, "zombies": 8, "crashresume_bridge": 3}
"""Harness -> seconds. A seeded sample: the same points in the same order, as far as the time reaches."""


@pytest.mark.slow
@pytest.mark.parametrize("name", SLICES)
def test_nothing_is_repeated_skipped_stuck_or_falsely_verified(name: str, folder: Path) -> None:
    """Whatever comes first, and whoever else is there."""
    tally = tallied(cast(Harness, importlib.import_module(name)), name, folder, seconds=SLICES[name], seed=SEED)
    assert tally.tried > 0
    assert tally.clean, tally.line()


@pytest.mark.slow
def test_over_the_same_bridge_crashresume_objects_to_who_notes_what_is_done_when_it_is_done(tmp_path: Path) -> None:
    """Zeros prove nothing otherwise."""
    report = crashresume_bridge.conformance("naively", 1, tmp_path)
    assert {finding.kind for finding in report.findings} == {"effect_replayed"}
