"""A question of the inbox, and the answer that stands, as data."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from milepost.protocol.keys import names_in
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
    what = {"choice": answer.choice, "by": answer.by, "at": answer.at, "note": answer.note, "ref": answer.ref}
    return {**what, "door": answer.door, "role": answer.role}


# ── for a page: evidence in parts, what comes next, what belongs together ───────────────────────────

REQUESTS = ("request", "new_request", "arguments", "output")
"""Facts that are shown whole: what exactly will be or was sent, and what a step was given and returned."""
_SHOWN_APART = frozenset({"changes", "old", "new", "of", "asked_anew", "summary"})
"""Facts that have a part of their own, or stand above all parts."""


def evidence_parts(evidence: Any) -> list[dict[str, Any]]:
    """Return evidence in parts people read: requests whole, changes as lines, versions side by side, other facts."""
    if evidence in (None, {}, []):
        return []
    if isinstance(evidence, list):
        return [part for entry in evidence for part in evidence_parts(entry)]
    return [*_parts(evidence)] if isinstance(evidence, dict) else [_part("value", "evidence", evidence)]


def _parts(facts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name, title in (("asked_anew", "asked anew because"), ("changes", "changes")):
        if isinstance(facts.get(name), list) and facts[name]:
            yield _part("changes", title, [str(change) for change in facts[name]])
    yield from (_part("request", name, facts[name]) for name in REQUESTS if facts.get(name) is not None)
    if isinstance(facts.get("old"), dict) and isinstance(facts.get("new"), dict):
        yield _part("versions", str(facts.get("of", "versions")), _side_by_side(facts["old"], facts["new"]))
    left = {name: value for name, value in facts.items() if name not in (*REQUESTS, *_SHOWN_APART)}
    scalars = {name: value for name, value in left.items() if not isinstance(value, (dict, list))}
    if scalars:
        yield _part("facts", "facts", scalars)
    yield from (_part("value", name, value) for name, value in left.items() if name not in scalars and value)


def _part(kind: str, name: str, value: Any) -> dict[str, Any]:
    return {"kind": kind, "name": name.replace("_", " "), "value": value}


def _side_by_side(old: dict[str, Any], new: dict[str, Any]) -> list[dict[str, Any]]:
    names = list(dict.fromkeys([*old, *new]))
    return [{"name": name, "old": old.get(name), "new": new.get(name)} for name in names]


def next_words(row: QuestionRow) -> str:
    """Say what happens once a question is answered."""
    return (
        f"Nothing runs yet: the answer is recorded, and the run acts on it at its next resume "
        f"(`milepost resume {shlex.quote(row.run_id)}`, or by itself under `milepost watch`)."
    )


TOGETHER_MAX = 1000
"""Questions that are offered to be answered in one go; the oldest."""


def together(rows: Sequence[QuestionRow]) -> list[dict[str, Any]]:
    """Return questions that may be answered in one go: of one run and kind, about calls of one name."""
    found: dict[tuple[str, str, str], list[QuestionRow]] = {}
    for row in rows:
        found.setdefault((row.run_id, row.kind, "/".join(names_in(row.path))), []).append(row)
    return [
        {
            "run_id": run_id,
            "kind": kind,
            "name": name,
            "count": len(group),
            "left_out": max(len(group) - TOGETHER_MAX, 0),
            "choices": [choice["name"] for choice in question_object(group[0])["choices"] if not choice["needs"]],
            "questions": [question_object(row) for row in group[:TOGETHER_MAX]],
        }
        for (run_id, kind, name), group in found.items()
    ]
