"""What tests of promotion share: shadow runs whose comparison is kept, and the person who answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from milepost.records.identity import Identity
from milepost.runtime.answering import answer_question
from milepost.shadow.evidence import keep_report
from milepost.shadow.report import report
from milepost.stores.contract import Store


def shadowed(store: Store, plan: Any, run_id: str, file: Path, *given: str) -> str:
    """Run a shadow and keep how it compared; return the comparison's id."""
    plan.options(store=store, shadow=True).run(run_id, *given)
    return keep_report(store, report(store, run_id, against=str(file)))


def answer(store: Store, choice: str = "approve") -> None:
    """Answer the one question there is."""
    (row,) = store.questions()
    by = Identity("ada@desk")
    answer_question(store, row.question_id, choice, by=by, seal_key=None, at="2026-11-02T08:00:00+00:00")
