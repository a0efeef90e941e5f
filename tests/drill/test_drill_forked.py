"""A process forked from a warm one is a whole process: the drill's verdicts rest on that."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_a_forked_process_refuses_strangers_like_any_other(tmp_path: Path) -> None:
    """Pre-forking servers start workers like this; what guards a run must be awake in there."""
    plan = Path(__file__).with_name("forked_plan.py")
    ran = subprocess.run([sys.executable, str(plan)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == "outside-run", ran.stderr
