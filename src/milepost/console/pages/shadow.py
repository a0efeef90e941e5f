"""The report of a shadow run: what it would have written. Comparing it with what others did is the command's."""

from __future__ import annotations

from typing import Any

from milepost.console.pages.asked import Asked
from milepost.console.wiring import Console
from milepost.runtime.opening import row_of


def gather(console: Console, asked: Asked) -> dict[str, Any]:
    """Return what a shadow run would have sent."""
    row = row_of(console.store, asked.needed("id"))
    return {"run_id": row.run_id, "effects": []}
