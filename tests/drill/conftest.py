"""Makes the drilled tasks importable, here and in the processes of a drill: they get this process's path."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [place for place in (str(Path(__file__).parent / "tasks"),) if place not in sys.path]
