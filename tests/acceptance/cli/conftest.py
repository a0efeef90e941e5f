"""A shell in an empty folder with the plans of `plans/` in it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from cli_shell import Shell

import milepost

PLANS = Path(__file__).parent / "plans"


@pytest.fixture(scope="session")
def _compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the processes of these tests keep compiled modules, so that each starts fast."""
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture
def shell(tmp_path: Path, _compiled: Path) -> Shell:
    for plan in PLANS.glob("*.py"):
        shutil.copy(plan, tmp_path)
    environ = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "NO_COLOR")}
    tested = str(Path(milepost.__file__).parents[1])  # whichever is installed, the checkout that is tested
    return Shell(tmp_path, {**environ, "PYTHONPYCACHEPREFIX": str(_compiled), "PYTHONPATH": tested})
