"""A run as a whole, as data: its row, what its records say, what is open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from milepost.errors import SealKeyMissing
from milepost.runtime.opening import Opened
from milepost.runtime.standing import Standing, unanswered, waits_until
from milepost.stores.contract import Store
from milepost.views.data import as_data
from milepost.views.limits import limit_objects
from milepost.views.opened import now
from milepost.views.runs import run_object
from milepost.views.steps import Row, spent_in_all, steps

IN_RECORDS = ("resumes", "versions", "spent", "limits", "forked_from", "counts", "steps", "open")
"""What is told from a run's records; the rest stands in its row."""


def is_unread(opened: Opened) -> bool:
    """Say whether nothing of a run could be read: it is sealed, and its key is not here."""
    return isinstance(opened.refusal, SealKeyMissing)


def overview_object(
    store: Store, opened: Opened, standing: Standing, rows: Sequence[Row] | None = None
) -> dict[str, Any]:
    """Return all that `show` tells as data; what cannot be told without a key is null. `rows`: its steps, if made."""
    if is_unread(opened):
        return {**run_object(opened.row, standing), **dict.fromkeys(IN_RECORDS)}
    s = opened.snapshot
    rows = steps(opened) if rows is None else rows
    todo = {row.question_id for row in unanswered(store, opened.row.run_id)}
    return {
        **run_object(opened.row, standing),
        "resumes": s.resumes,
        "versions": dict(s.versions),
        "spent": spent_in_all(s),
        "limits": limit_objects(s, now()),
        "forked_from": s.started.forked_from if s.started else None,
        "counts": dict(Counter(row.stands for row in rows)),
        "steps": [{**as_data(row), "counts": s.counts(row.path)} for row in rows],
        "open": {
            "questions": [
                {
                    "question_id": q.question_id,
                    "kind": q.question_kind,
                    "sentence": q.sentence,
                    "path": q.path,
                    "answered": q.question_id not in todo,
                }
                for q in s.questions.values()
            ],
            "intents": [
                {"path": state.path, "key": send.intent.key, "provider": send.intent.provider, "at": send.intent.at}
                for state, send in s.open_intents()
            ],
            "waits_until": waits_until(s),
        },
    }
