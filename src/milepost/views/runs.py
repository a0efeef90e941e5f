"""The rows of runs as data: what the list of runs says, and where each stands. Reads no journal."""

from __future__ import annotations

from collections.abc import Sequence

from milepost.records.model import RunStatus
from milepost.runtime.standing import Standing, standing, unanswered
from milepost.stores.contract import RunRow, Store
from milepost.views.opened import now, seal_key


def run_object(row: RunRow, standing: Standing) -> dict[str, object]:
    """Return a run's row as data."""
    return {
        "run_id": row.run_id,
        "task": row.task,
        "shadow": row.shadow,
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
        "cost": row.progress.cost or None,
        "tokens": row.progress.tokens,
        "sealed_with": row.seal_name,
    }


def run_rows(store: Store, rows: Sequence[RunRow]) -> list[dict[str, object]]:
    """Return rows of runs as data, with where each stands. Reads no journal; a few queries, however many rows."""
    asks = any(row.progress.status is RunStatus.ASKING for row in rows)
    asking = frozenset(question.run_id for question in unanswered(store)) if asks else frozenset()
    moment = now()
    return [run_object(row, standing(store, row, seal_key(), moment, asking=asking)) for row in rows]
