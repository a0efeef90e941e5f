"""Reads back what a month on stage returned, and what was planted in it. For the tests beside it; runs no step."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from invoices.demo.stage import RUN, Stage

REPORT = """\
import json, sys
from dataclasses import asdict
from invoices.reconcile import reconcile
print(json.dumps(asdict(reconcile.resume(sys.argv[1])), default=str))
"""


def milepost(stage: Stage, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line on a stage and give what it said."""
    return _python(stage, "-m", "milepost", *arguments)


def report_of(stage: Stage, run_id: str = RUN) -> dict[str, Any]:
    """Give the report of a finished run: starting a finished run again returns what it returned, and does nothing."""
    done = _python(stage, "-c", REPORT, run_id)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _python(stage: Stage, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=stage.folder,
        env=stage.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def truth_of(month: Path, count: int) -> list[dict[str, Any]]:
    """Give what was planted in the first mails of the carried month."""
    entries: list[dict[str, Any]] = json.loads((month / "truth.json").read_text("utf-8"))["entries"]
    return entries[:count]
