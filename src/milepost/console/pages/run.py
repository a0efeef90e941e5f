"""One run: where it stands, its timeline, steps, effects, what is open; and two slow looks at it, rules and seals."""

from __future__ import annotations

import os
from typing import Any

from milepost.console.pages.asked import Asked
from milepost.console.wiring import Console
from milepost.runtime.opening import row_of
from milepost.runtime.verify import verify_run
from milepost.views.data import as_data
from milepost.views.errors import error_object
from milepost.views.opened import now, seal_key, stands
from milepost.views.overview import overview_object
from milepost.views.sends import sends_of
from milepost.views.steps import HEADERS, shown_lines, steps
from milepost.views.timeline import timeline, timeline_object

SENDS_MAX = 100
"""Effects of a run that its page lists when it counts equal items."""


def gather(console: Console, asked: Asked) -> dict[str, Any]:
    """Return everything a run's page shows at once."""
    opened = console.read(asked.needed("id"))
    standing = stands(console.store, opened.row)
    every, opened_names = asked.text("all") == "1", asked.text("open")
    rows, sends = steps(opened), sends_of(opened)
    return {
        **overview_object(console.store, opened, standing, rows),
        "refusal": error_object(opened.refusal) if opened.refusal is not None else None,
        "head": opened.row.head.seq,
        "every": every,
        "opened": opened_names or None,
        "headers": HEADERS,
        "lines": [as_data(line) for line in shown_lines(rows, every=every, opened=(opened_names,))],
        "sends": sends if every else sends[:SENDS_MAX],
        "sends_left_out": 0 if every else max(len(sends) - SENDS_MAX, 0),
        "timeline": timeline_object(timeline(opened, now(), is_dead=standing.word == "died")),
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
    return {"run_id": run_id, "ok": all(v.ok for v in verdicts), "verdicts": [as_data(v) for v in verdicts]}
