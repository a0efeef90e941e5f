"""The report of a shadow run: what it would have written, alone or beside another run. Files are for the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from milepost.console.pages.asked import Asked, bad_value
from milepost.console.wiring import Console
from milepost.runtime.opening import row_of
from milepost.shadow.report import report


def gather(console: Console, asked: Asked) -> dict[str, Any]:
    """Return what a shadow run would have written; with `against`, compared with what another run did."""
    against = asked.text("against") or None
    if against is not None:
        _refuse_file(against)
        row_of(console.store, against)
    return report(console.store, asked.needed("id"), against=against, effect=asked.text("effect")).to_json()


def _refuse_file(name: str) -> None:
    """Keep a link from naming a file of this machine. Raises: BadName."""
    path = Path(name)
    if path.suffix or "/" in name or path.exists():
        reason = "the console compares with runs; `milepost shadow report` compares with files, too"
        raise bad_value("the other side", name[:80], reason)
