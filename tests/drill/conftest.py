"""Makes the drilled tasks importable, here and in the processes of a drill: they get this process's path."""

from __future__ import annotations

import sys
from pathlib import Path

TASKS = Path(__file__).parent / "tasks"

if str(TASKS) not in sys.path:
    sys.path.insert(0, str(TASKS))
