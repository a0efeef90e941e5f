"""The shell of the command line's own tests, in an empty folder: what people do is typed here, too."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

CLI = Path(__file__).parents[1] / "cli"

if str(CLI) not in sys.path:
    sys.path.insert(0, str(CLI))

from cli_shell import Shell  # noqa: E402


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the processes of these tests keep compiled modules, so that each starts fast."""
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture
def shell(tmp_path: Path, compiled: Path) -> Shell:
    environ = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "NO_COLOR", "PYTHONPATH")}
    return Shell(tmp_path, {**environ, "PYTHONPYCACHEPREFIX": str(compiled)})
