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


def report_of(stage: Stage) -> dict[str, Any]:
    """Give the report of a finished run: starting a finished run again returns what it returned, and does nothing."""
    done = subprocess.run(
        [sys.executable, "-c", REPORT, RUN],
        cwd=stage.folder,
        env=stage.environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def truth_of(month: Path, count: int) -> list[dict[str, Any]]:
    """Give what was planted in the first mails of the carried month."""
    entries: list[dict[str, Any]] = json.loads((month / "truth.json").read_text("utf-8"))["entries"]
    return entries[:count]
