"""What a journal acted on must be what people gave, with everything that came with it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from milepost.errors import CorruptRecord
from milepost.records.canonical import digest
from milepost.records.model import AnswerEntered, Pointer
from milepost.records.rows import AnswerRow
from milepost.runtime.proof import check_entered

AT = "2026-11-02T08:00:00.000000+00:00"
GIVEN = AnswerRow("q-1", "r", "edit", "ada@desk", AT, "less", request=b'{"amount":9}', door="cli", role="finance")
ENTERED = AnswerEntered(
    at=AT,
    question_id="q-1",
    choice="edit",
    by="ada@desk",
    answered_at=AT,
    note="less",
    request=Pointer(digest(b'{"amount":9}'), 12),
    door="cli",
    role="finance",
)


def test_an_answer_as_it_was_given_is_proven() -> None:
    check_entered("r", [ENTERED], [GIVEN])


@pytest.mark.parametrize(
    "other",
    [
        {"choice": "approve"},
        {"by": "bob@desk"},
        {"request": Pointer(digest(b'{"amount":900}'), 14)},
        {"request": None},
        {"result": Pointer(digest(b"1"), 1)},
        {"role": "board"},
        {"door": "library"},
        {"ref": "R-1"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_an_answer_that_was_entered_otherwise_is_not(other: dict[str, Any]) -> None:
    """Whoever holds the run could act on another edit than the one that was approved, and call it theirs."""
    with pytest.raises(CorruptRecord, match="q-1"):
        check_entered("r", [replace(ENTERED, **other)], [GIVEN])
    with pytest.raises(CorruptRecord):
        check_entered("r", [ENTERED], [replace(GIVEN, place=0)])
