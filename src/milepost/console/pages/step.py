"""One step or effect: its records, output, sources, and the artifacts it points at."""

from __future__ import annotations

from typing import Any

from milepost.console.pages.asked import Asked
from milepost.console.wiring import Console
from milepost.views.checkpoint import checkpoint_object


def gather(console: Console, asked: Asked) -> dict[str, Any]:
    """Return everything recorded about one path."""
    opened = console.read(asked.needed("run"))
    return checkpoint_object(console.store, opened, asked.needed("path"))
