"""Lets the slices use `tests/crash` (toy plans, provider, worlds), `tests/property` (random plans) and the examples."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

for room in ("crash", "property", "../examples"):
    folder_of_room = str(Path(__file__).parents[1] / room)
    if folder_of_room not in sys.path:
        sys.path.append(folder_of_room)


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where a harness may work."""
    return tmp_path_factory.mktemp("soak")
