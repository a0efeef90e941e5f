"""The month's world for a drill: `milepost drill …/reconcile.py:reconcile month=2026-10 --setup … --observe …`.

`month` sets a fresh world up (mails, orders, accounting queue, mail provider, model) and gives its addresses;
`outside` says what the queue and the sent folder hold. Called by `milepost drill` and by the tests.
"""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from pathlib import Path
from typing import Any

from invoices.world import lay_out, start_world

MAILS = int(os.environ.get("INVOICES_DRILL_MAILS", "5"))


@contextmanager
def month() -> Iterator[dict[str, str]]:
    """Lay out the first mails of the carried month here and start its world; stop it when the drill's world is over.

    Crash: the world's processes end with the process that started them.
    """
    lay_out(Path(), MAILS)
    with start_world(Path("outside")) as world:
        yield {**world.environment(), "INVOICES_SETTLE_S": "1", "INVOICES_AT_ONCE": "1"}


def outside() -> dict[str, Any]:
    """Return what is in the accounting queue and in the sent folder: references and keys, no times."""
    with urllib.request.urlopen(f"{os.environ['INVOICES_ACCOUNTING_URL']}/ledger", timeout=30) as answer:
        entries = json.load(answer)["entries"]
    sent = Path(os.environ["INVOICES_SENT"])
    mails = [message_from_bytes(path.read_bytes()) for part in ("new", "cur") for path in (sent / part).iterdir()]
    return {
        "queue": sorted([entry["key"], entry["ref"], entry["exception"]["id"]] for entry in entries),
        "mails": sorted([str(mail["To"]), str(mail["Message-ID"])] for mail in mails),
    }
