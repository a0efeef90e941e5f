"""Comparing what a shadow run would have written with what was done: every stand, field by field."""

from __future__ import annotations

from typing import Any

import pytest

from milepost.errors import MisuseError
from milepost.shadow.comparing import Stands, as_named, compare, matching_fields, one_sided
from milepost.shadow.report import agreement_of
from milepost.shadow.writes import Write, fields_of


def would(number: str, **fields: Any) -> Write:
    return Write({"invoice_number": number, **fields}, "post", number, f"post[{number}]")


def did(number: str, **fields: Any) -> Write:
    return Write({"invoice_number": number, **fields})


def test_every_write_of_either_side_has_one_line() -> None:
    ours = [would("INV-1", amount="10.00"), would("INV-2", amount="20.00"), would("INV-3", amount="3")]
    theirs = [did("INV-2", amount="21"), did("INV-1", amount="10"), did("INV-9", amount="9")]
    lines = compare(ours, theirs, matching_fields(ours, theirs))
    assert [(line.stands, line.key) for line in lines] == [
        (Stands.AGREED, "INV-1"),
        (Stands.DIFFERENT, "INV-2"),
        (Stands.EXTRA, "INV-3"),
        (Stands.MISSED, "INV-9"),
    ]
    (difference,) = lines[1].differences
    assert (difference.field, difference.would, difference.did) == ("amount", "20.00", "21")


@pytest.mark.parametrize(
    ("here", "there", "same"),
    [
        ("12.00", 12, True),
        ("1e2", "100", True),
        (None, "", True),
        (" Miller ", "Miller", True),
        ("12.01", "12.0", False),
        ("NaN", "NaN", True),
        (True, "true", True),
        ("007", "7", True),
        ("a", "A", False),
    ],
)
def test_amounts_are_numbers_and_all_else_is_text(here: Any, there: Any, same: bool) -> None:
    (line,) = compare([would("x", v=here)], [did("x", v=there)], ["invoice_number"])
    assert (line.stands is Stands.AGREED) == same


def test_a_field_that_only_one_side_has_is_named_and_not_judged() -> None:
    lines = compare([would("x", ours=1)], [did("x", theirs=2)], ["invoice_number"])
    assert lines[0].stands is Stands.AGREED
    assert one_sided(lines) == (["ours"], ["theirs"])


def test_empty_cells_of_another_effects_rows_are_no_fields_that_were_not_compared() -> None:
    ours = [Write({"keep": 1}, "apply", "", "apply"), Write({"text": "done"}, "mail", "", "mail")]
    theirs = [
        Write({"keep": "1", "text": "", "by": ""}, "apply"),
        Write({"keep": "", "text": "done", "by": "ann"}, "mail"),
    ]
    assert one_sided(compare(ours, theirs, ["keep"])) == ([], ["by"])
    theirs = [Write({"keep": ""}, "apply")]
    assert [line.stands for line in compare(ours[:1], theirs, ["text"])] == [Stands.DIFFERENT]


def test_equal_keys_are_matched_one_by_one() -> None:
    lines = compare([would("x", a=1), would("x", a=1)], [did("x", a=1)], ["invoice_number"])
    assert [line.stands for line in lines] == [Stands.AGREED, Stands.EXTRA]


def test_writes_of_two_effects_with_one_key_are_not_mixed_up() -> None:
    ours = [Write({"to": "a"}, "mail", "k", "mail[k]"), Write({"to": "b"}, "post", "k", "post[k]")]
    lines = compare(ours, list(reversed(ours)), [])
    assert {line.stands for line in lines} == {Stands.AGREED}


def test_columns_are_found_by_the_end_of_their_name_whatever_the_case() -> None:
    ours = [Write({"head.amount": "1", "head.number": "x"}, "post", "x")]
    theirs = as_named([Write({"Amount": "2", "NUMBER": "x", "amount due": "3"})], ours)
    assert theirs[0].fields == {"head.amount": "2", "head.number": "x", "amount due": "3"}
    assert matching_fields(ours, theirs) == ["head.number"]


@pytest.mark.parametrize(
    "theirs",
    [[did("x")], [Write({"nothing": "shared"})]],
)
def test_when_no_one_field_names_a_write_it_is_asked_for(theirs: list[Write]) -> None:
    ours = [Write({"invoice_number": "y"}, "post", "other")]
    with pytest.raises(MisuseError, match="--on"):
        matching_fields(ours, theirs)


def test_nested_requests_become_flat_and_a_single_argument_is_what_is_in_it() -> None:
    one = {"arguments": {"mismatch": {"number": "x", "lines": [{"a": 1}, {"a": 2}], "none": []}}}
    assert fields_of(one) == {"number": "x", "lines.0.a": 1, "lines.1.a": 2, "none": []}
    assert fields_of({"arguments": {"to": "a", "text": "b"}}) == {"to": "a", "text": "b"}
    with_file = {"arguments": {"paper": "x.pdf"}, "files": [{"path": "x.pdf", "fingerprint": "f"}]}
    assert fields_of(with_file) == {"paper": "x.pdf", "files.0": "f"}


def test_nothing_on_either_side_is_no_agreement() -> None:
    """0 of 0 is not 100 per cent."""
    assert agreement_of({"agreed": 0, "different": 0, "missed": 0, "extra": 0}) is None
    assert agreement_of({"agreed": 3, "different": 0, "missed": 1, "extra": 0}) == 0.75
