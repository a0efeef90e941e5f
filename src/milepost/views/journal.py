"""A record of a journal as data, as it is stored. Pure."""

from __future__ import annotations

import json

from milepost.stores.contract import StoredRecord


def stored_object(line: StoredRecord) -> dict[str, object]:
    return {
        "seq": line.seq,
        "chain": line.chain,
        "kind": line.kind,
        "seal": line.seal.hex(),
        "record": json.loads(line.body),
    }
