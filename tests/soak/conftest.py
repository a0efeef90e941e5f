"""Lets the slices use the crash laboratory of `tests/crash`: its toy plans, its provider, its worlds."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

CRASH = Path(__file__).parents[1] / "crash"
if str(CRASH) not in sys.path:
    sys.path.append(str(CRASH))


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where a harness may work."""
    return tmp_path_factory.mktemp("soak")
