"""A question of the inbox, and the answer that stands, as data."""

from __future__ import annotations

from typing import Any

from milepost.records.rows import AnswerRow
from milepost.runtime.answering import asked
from milepost.stores.contract import QuestionRow


def question_object(row: QuestionRow) -> dict[str, Any]:
    return {
        "question_id": row.question_id,
        "run_id": row.run_id,
        "kind": row.kind,
        "path": row.path,
        "sentence": row.sentence,
        "asked_at": row.asked_at,
        "choices": [{"name": c.name, "does": c.does, "needs": list(c.needs)} for c in asked(row).choices],
    }


def answer_object(answer: AnswerRow) -> dict[str, Any]:
    return {"choice": answer.choice, "by": answer.by, "at": answer.at, "note": answer.note, "ref": answer.ref}
