"""The row of a run as data. Pure."""

from __future__ import annotations

from milepost.runtime.standing import Standing
from milepost.stores.contract import RunRow


def run_object(row: RunRow, standing: Standing) -> dict[str, object]:
    """Return a run's row as data."""
    return {
        "run_id": row.run_id,
        "task": row.task,
        "status": row.progress.status,
        "stands": standing.word,
        "holder": standing.holder or None,
        "started_at": row.started_at,
        "at": row.progress.at,
        "family": row.family,
        "verified_count": row.progress.verified_count,
        "applied_count": row.progress.applied_count,
        "next_action": row.progress.next_action,
        "detail": row.progress.detail,
        "sealed_with": row.seal_name,
    }
