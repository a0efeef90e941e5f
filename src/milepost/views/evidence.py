"""The evidence of a question, and other JSON, as lines that people read: names and values, indented."""

from __future__ import annotations

import json
from typing import Any

from milepost.protocol.snapshot import Snapshot
from milepost.records.canonical import parse
from milepost.records.shown import cut, inert
from milepost.runtime.answering import asked
from milepost.runtime.keeping import Artifacts
from milepost.stores.contract import QuestionRow, Store

LINES_MAX = 200
LINE_LENGTH_MAX = 400
"""Characters of one line that are shown."""


def evidence_of(store: Store, row: QuestionRow) -> Any:
    """Return a question's evidence as data, None without any. Raises: CorruptRecord when it was altered."""
    question = asked(row)
    if question.evidence is None:
        return None
    artifacts = Artifacts(store, row.run_id, snapshot=Snapshot())
    return parse(artifacts.load(question.evidence, f"evidence of {row.question_id}"))


def evidence_lines(value: Any) -> list[str]:
    """Return JSON as indented lines, inert and bounded; nothing for empty evidence."""
    if value in (None, {}, []):
        return []
    lines = [cut(inert(line), LINE_LENGTH_MAX) for line in _lines(value, "  ")]
    left_out = [f"  … and {len(lines) - LINES_MAX} more lines; --json shows all"] if len(lines) > LINES_MAX else []
    return [*lines[:LINES_MAX], *left_out, ""]


def text_lines(text: str) -> list[str]:
    """Return a text as bounded lines behind a bar, so that none of them can pass for one of ours."""
    lines = text.split("\n")
    left_out = [f"  … and {len(lines) - LINES_MAX} more lines"] if len(lines) > LINES_MAX else []
    return [*(f"  | {cut(line, LINE_LENGTH_MAX)}" for line in lines[:LINES_MAX]), *left_out]


def _lines(value: Any, indent: str) -> list[str]:
    if isinstance(value, dict):
        return [line for name, inner in value.items() for line in _named(f"{indent}{name}:", inner, indent)]
    if isinstance(value, list):
        return [line for inner in value for line in _named(f"{indent}-", inner, indent)]
    return [indent + _scalar(value)]


def _named(head: str, value: Any, indent: str) -> list[str]:
    if isinstance(value, (dict, list)) and value:
        return [head, *_lines(value, indent + "    ")]
    return [f"{head} {_scalar(value)}"]


def _scalar(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
