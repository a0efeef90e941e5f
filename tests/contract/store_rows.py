"""Small batches and rows for the conformance suite."""

from __future__ import annotations

import hashlib
from typing import Any

from milepost.records.model import RunStatus
from milepost.records.rows import ClaimRow
from milepost.stores.contract import (
    Batch,
    Head,
    Holder,
    Lease,
    NewRun,
    Progress,
    QuestionRow,
    Store,
    StoredArtifact,
    StoredRecord,
)

HERE = Holder("here", "boot-1", 100, "2026-11-01T08:00:00Z")
ELSEWHERE = Holder("elsewhere", "boot-9", 200, "2026-11-01T09:00:00Z")
AT = "2026-11-01T10:00:00Z"


def begin(store: Store, run_id: str = "r", *, holder: Holder = HERE, **facts: Any) -> Lease:
    """Create a run and return its lease."""
    about: dict[str, Any] = {"task": "task", "family": run_id, "seal_name": None, "at": AT, **facts}
    lease = store.create_run(NewRun(run_id=run_id, holder=holder, **about))
    assert lease is not None
    return lease


def take_over(store: Store, run_id: str = "r") -> Lease:
    """Succeed a holder that stood still."""
    row = store.run(run_id)
    assert row is not None
    lease = store.acquire(run_id, ELSEWHERE, still=row.held)
    assert isinstance(lease, Lease)
    return lease


def record(seq: int, *, chain: str = "", kind: str = "step_started", body: bytes = b"{}") -> StoredRecord:
    return StoredRecord(seq, chain, kind, body, bytes([seq % 256]) * 32)


def batch(lease: Lease, first: int, count: int = 1, **more: Any) -> Batch:
    """Return a batch of `count` records that starts at `first`."""
    records = more.pop("records", [record(first + n) for n in range(count)])
    seal = b"h" * 31 + bytes([records[-1].seq % 256])
    return Batch(lease.run_id, lease.token, records, Head(records[-1].seq, seal), **more)


def artifact(data: bytes) -> StoredArtifact:
    return StoredArtifact(hashlib.sha256(data).hexdigest(), len(data), "application/json", data)


def progress(status: RunStatus, **more: Any) -> Progress:
    return Progress(status, AT, **more)


def question(lease: Lease, question_id: str = "q1", **more: Any) -> QuestionRow:
    return QuestionRow(question_id, lease.run_id, "attempts_used", "match", "Again?", AT, b"{}", **more)


def claim(lease: Lease, key: str = "mp1-key", path: str = "post") -> ClaimRow:
    return ClaimRow(key, lease.run_id, path, "d" * 64, AT)


def seqs(store: Store, run_id: str = "r", **more: Any) -> list[int]:
    return [found.seq for found in store.records(run_id, **more)]
