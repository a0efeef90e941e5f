"""One run: where it stands, its timeline, steps, effects, what is open; and two slow looks at it, rules and seals."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

from milepost.console.pages.asked import Asked
from milepost.console.wiring import Console
from milepost.runtime.opening import row_of
from milepost.runtime.verify import verify_run
from milepost.views.errors import error_object
from milepost.views.opened import now, read_whole, seal_key, stands
from milepost.views.overview import overview_object
from milepost.views.sends import sends_of
from milepost.views.steps import HEADERS, shown_lines, steps
from milepost.views.timeline import timeline


def gather(console: Console, asked: Asked) -> dict[str, Any]:
    """Return everything a run's page shows at once."""
    opened = read_whole(console.store, asked.needed("id"))
    standing = stands(console.store, opened.row)
    every = asked.text("all") == "1"
    drawn = timeline(opened, now())
    return {
        **overview_object(console.store, opened, standing),
        "refusal": error_object(opened.refusal) if opened.refusal is not None else None,
        "head": opened.row.head.seq,
        "every": every,
        "headers": HEADERS,
        "lines": [asdict(line) for line in shown_lines(steps(opened), every=every)],
        "sends": sends_of(opened),
        "timeline": asdict(drawn),
    }


def gather_check(console: Console, asked: Asked) -> dict[str, Any]:
    """Return what each of the six rules finds now; a child process asks them."""
    row = row_of(console.store, asked.needed("id"))
    said = console.children.check(row.run_id, row.head.seq)
    value = said.value if isinstance(said.value, dict) else {}
    return {"run_id": row.run_id, "findings": value.get("findings", []), "trouble": said.trouble or None}


def gather_seals(console: Console, asked: Asked) -> dict[str, Any]:
    """Return what `milepost verify` finds: every seal, digest and artifact of a run."""
    run_id = asked.needed("id")
    verdicts = verify_run(console.store, run_id, seal_key(), os.environ)
    return {"run_id": run_id, "ok": all(v.ok for v in verdicts), "verdicts": [asdict(v) for v in verdicts]}
