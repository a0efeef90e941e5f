"""Seals of rows beside the journal: each covers every field, and fits no other row, run or kind."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from milepost.errors import CorruptRecord
from milepost.records.rows import AnswerRow, CancelRow, ClaimRow
from milepost.records.seal import Sealer

AT = "2026-11-02T08:00:00Z"
SEALER = Sealer("r", b"k" * 32)
ROWS = (
    AnswerRow("q1", "r", "applied", "ada", AT, "seen", "R-1", b"[1]", 1, None, b"{}", "cli", "finance"),
    CancelRow("r", "ada", AT, "wrong month"),
    ClaimRow("mp1-key", "r", "post", "d" * 64, AT, "applied", "R-1", b"[1]", "application/json"),
)
each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: type(row).__name__)
Row = AnswerRow | CancelRow | ClaimRow


@each_row
def test_a_sealed_row_is_trusted_with_the_same_key_only(row: Row) -> None:
    sealed = SEALER.sealed(row)
    SEALER.check_row(sealed)
    with pytest.raises(CorruptRecord, match="does not fit"):
        Sealer("r", b"another").check_row(sealed)
    with pytest.raises(CorruptRecord, match="no seal"):
        SEALER.check_row(row)


@each_row
def test_without_a_key_nothing_is_sealed_and_nothing_refused(row: Row) -> None:
    assert Sealer("r", None).sealed(row) == row
    Sealer("r", None).check_row(row)


@each_row
def test_the_seal_of_a_row_covers_every_field(row: Row) -> None:
    """What is left out of a seal can be changed by anyone; absent is not empty."""
    sealed = SEALER.sealed(row)
    for field in fields(row):
        if field.name == "seal":
            continue
        old, may_be_absent = getattr(row, field.name), field.default is None
        others = (0, old + 1) if isinstance(old, int) else (old[:0], old + old[:1])
        for other in (*others, None) if may_be_absent else others:
            with pytest.raises(CorruptRecord):
                SEALER.check_row(replace(sealed, **{field.name: other}))


def test_fields_cannot_be_moved_into_each_other() -> None:
    """Each is sealed with its length and kind."""
    sealed = SEALER.sealed(CancelRow("r", "ada", AT, "x"))
    for by, note in (("adax", ""), ("ad", "ax"), ("ada;text:1:x", "")):
        with pytest.raises(CorruptRecord):
            SEALER.check_row(replace(sealed, by=by, note=note))


def test_an_answer_sealed_before_there_could_be_several_is_trusted() -> None:
    """Answered before an upgrade, resumed after it; but nothing that came since can be added to it."""
    seal = bytes.fromhex("b95dc36cf529dd6a35c118121cca039b878e4ceb7315d093c5879f7c3b1d1ead")
    old = AnswerRow("q1", "r", "applied", "ada", AT, "seen", "R-1", b"[1]", seal=seal)
    SEALER.check_row(old)
    for more in ({"place": 2}, {"place": 0}, {"role": "finance"}, {"door": "cli"}, {"request": b"{}"}):
        with pytest.raises(CorruptRecord):
            SEALER.check_row(replace(old, **more))


def test_the_seal_of_one_kind_of_row_never_fits_another() -> None:
    seals = {SEALER.sealed(row).seal for row in ROWS}
    assert len(seals) == len(ROWS)
