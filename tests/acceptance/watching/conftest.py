"""A shell in an empty folder with the plans of `plans/` in it, and servers that take what people are told."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

CLI = Path(__file__).parents[1] / "cli"

if str(CLI) not in sys.path:
    sys.path.insert(0, str(CLI))

from cli_shell import Shell  # noqa: E402
from hooks import Hook  # noqa: E402

HERE = Path(__file__).parent


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    for plan in (HERE / "plans").glob("*.py"):
        shutil.copy(plan, tmp_path)
    environ = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "NO_COLOR")}
    return Shell(tmp_path, environ)


@pytest.fixture
def hook(tmp_path: Path) -> Iterator[Callable[..., Hook]]:
    """Start webhooks, each a process of its own; `refusals` is how often it answers 503 first."""
    numbers = itertools.count(1)
    with ExitStack() as running:

        def started(refusals: int = 0) -> Hook:
            received = tmp_path / f"received-{next(numbers)}.jsonl"
            command = [sys.executable, str(HERE / "hook_server.py"), str(received), str(refusals)]
            process = running.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            running.callback(process.kill)
            assert process.stdout is not None
            return Hook(int(process.stdout.readline()), received)

        yield started
