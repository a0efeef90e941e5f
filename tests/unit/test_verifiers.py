"""Ready-made verifiers say which row failed and what was found, and never crash on data they did not expect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel

from milepost.errors import BadOption
from milepost.verifiers import (
    MESSAGE_MAX,
    Verifier,
    each,
    matches_count_of,
    max_size,
    no_empties,
    row_count,
    total,
    unique,
)


@dataclass
class Invoice:
    number: str
    amount: Any
    lines: Any = ("line",)

    @property
    def short(self) -> str:
        return self.number[:3]


class Model(BaseModel):
    number: str
    amount: Any


class Row(NamedTuple):
    number: str
    amount: Any


SHAPES: list[Callable[[str, Any], Any]] = [
    Invoice,
    lambda number, amount: Model(number=number, amount=amount),
    lambda number, amount: {"number": number, "amount": amount},
    Row,
]


def three(shape: Callable[[str, Any], Any], *amounts: Any) -> list[Any]:
    return [shape(f"INV-{place}", amount) for place, amount in enumerate(amounts or (1, 2, 3), start=1)]


@pytest.mark.parametrize("shape", SHAPES)
def test_fields_are_found_in_every_shape_of_row(shape: Callable[[str, Any], Any]) -> None:
    rows = three(shape)
    checks = [row_count(equals=3), unique("number"), no_empties("number", "amount"), no_empties(), unique()]
    assert [check(rows) for check in [*checks, total("amount", equals=6)]] == [None] * 6
    told = unique("numbr")(rows)
    assert told is not None
    assert "has no field 'numbr'; it has number, amount" in told


def test_checks_have_names_and_declare_their_inputs() -> None:
    named: list[tuple[Verifier, str, tuple[str, ...]]] = [
        (row_count(at_least=1, equals="count"), "row_count(at_least=1, equals=count)", ("count",)),
        (unique("number", rows="invoices"), "unique(number, rows=invoices)", ()),
        (total("amount", equals="control.total", tolerance=0.01), "total(amount=control.total, ±0.01)", ("control",)),
        (no_empties("supplier"), "no_empties(supplier)", ()),
        (matches_count_of("mails"), "matches_count_of(mails)", ("mails",)),
        (each(is_dear), "each(is_dear)", ()),
        (max_size(10), "max_size(10)", ()),
    ]
    for check, name, inputs in named:
        assert (check.name, check.inputs) == (name, inputs)


def is_dear(invoice: Invoice) -> bool | str | None:
    if invoice.amount == 0:
        raise ZeroDivisionError("by the amount")
    return None if invoice.amount == 1 else f"costs {invoice.amount}" if invoice.amount == 2 else invoice.amount > 3


@pytest.mark.parametrize(
    ("check", "output", "inputs", "told"),
    [
        (row_count(at_least=1), [], {}, "expected at least 1 rows, found 0"),
        (row_count(at_most=2), {1: 1, 2: 2, 3: 3}, {}, "expected at most 2 rows, found 3"),
        (row_count(equals="n"), [1], {"n": 2}, "expected 2 rows, found 1"),
        (row_count(equals="n"), [1], {"n": "2"}, "n is '2', expected a finite number"),
        (row_count(equals="n"), [1], {}, "the step has no input 'n'"),
        (row_count(at_least=1), "text", {}, "expected rows (a list, tuple, set or mapping), found str"),
        (row_count(at_least=1, rows="a.b"), {"a": {}}, {}, "the output (dict) has no field 'b'"),
        (matches_count_of("mails"), [1], {"mails": [1, 2]}, "mails has 2 items, the output has 1 rows"),
        (unique("n"), [{"n": 1}, {"n": 2}, {"n": 1}], {}, "row 1 and row 3 both have 1"),
        (unique("a", "b"), [{"a": [1], "b": 2}] * 2, {}, "row 1 and row 2 both have [1], 2"),
        (unique(), {"x": 1, "y": 1}, {}, "row 'x' and row 'y' both have 1"),
        (no_empties("s"), [{"s": "x"}, {"s": " \n"}, {"s": None}], {}, "row 2: s is ' \\n'; row 3: s is None"),
        (no_empties(), [{"s": 0, "t": False, "u": []}], {}, "row 1: u is []"),
        (no_empties(), ["x", ""], {}, "row 2: it is ''"),
        (no_empties("lines.0"), [Invoice("1", 1, [""])], {}, "row 1: lines.0 is ''"),
        (no_empties("lines.1"), [Invoice("1", 1, [""])], {}, "row 1 (list) has no field '1'"),
        (total("a", equals=3), [{"a": 1}, {"a": 1}], {}, "a adds up to 2, expected 3 (1 apart)"),
        (total("a", equals=1), [{"a": "1"}], {}, "row 1: a is '1' (str), expected a finite number"),
        (total("a", equals=1), [{"a": True}], {}, "row 1: a is True (bool), expected a finite number"),
        (total("a", equals=1), [{"a": Decimal("NaN")}], {}, "row 1: a is Decimal('NaN') (Decimal), expected"),
        (total("a", equals=1), [{"a": float("inf")}], {}, "row 1: a is inf (float), expected a finite number"),
        (total("a", equals=1), [{"a": Decimal("1e999999")}, {"a": 1}], {}, "cannot be computed exactly"),
        (total("a", equals=1), [{"a": 10**500}, {"a": 0.5}], {}, "cannot be computed exactly"),
        (each(is_dear), three(Invoice, 1, 2, 4, 0), {}, "row 2: costs 2; row 4: ZeroDivisionError: by the amount"),
        (each(is_dear), three(Invoice, 3), {}, "row 1: Invoice(number='INV-1', amount=3, lines=('line',))"),
        (unique(), [10**5000] * 2, {}, "row 1 and row 2 both have <int that cannot be shown>"),
        (max_size(3), b"1234", {}, "expected at most 3 bytes, found 4"),
        (max_size(3), {"a": 1}, {}, "expected at most 3 bytes, found 7"),
        (max_size(3), object(), {}, "its size cannot be told"),
        (max_size(3), Path("not-there"), {}, "its size cannot be told"),
    ],
)
def test_failures_say_which_row_and_what_was_found(check: Verifier, output: Any, inputs: Any, told: str) -> None:
    sentence = check(output, **inputs)
    assert sentence is not None
    assert told in sentence


def test_decimals_add_up_exactly_where_28_digits_would_not() -> None:
    rows = [{"a": Decimal("1e30")}, {"a": Decimal("0.01")}, {"a": -(10**30)}]
    assert total("a", equals=Decimal("0.01"))(rows) is None
    assert total("a", equals="control")(rows, control=Decimal("0.02")) is not None


def test_floats_need_a_tolerance_and_say_so() -> None:
    rows = [{"a": 0.1}] * 3
    told = total("a", equals=Decimal("0.3"))(rows)
    assert told is not None
    assert "floats need a tolerance=" in told
    assert total("a", equals=Decimal("0.3"), tolerance=0.001)(rows) is None
    assert total("a", equals=0.3, tolerance=Decimal("0.001"))(rows) is None


def test_no_rows_add_up_to_nothing() -> None:
    assert total("a", equals=0)([]) is None
    assert total("a", equals=1)([]) == "a adds up to 0, expected 1 (1 apart)"


def test_rows_inside_the_output_and_control_totals_inside_inputs_are_reached() -> None:
    report, control = {"invoices": three(Invoice)}, SimpleNamespace()
    assert total("amount", equals="control.total", rows="invoices")(report, control={"total": 6}) is None
    told = total("amount", equals="control.total", rows="invoices")(report, control=control)
    assert told == "input control (SimpleNamespace) has no field 'total'"


def test_properties_are_fields_and_methods_are_not() -> None:
    rows = three(Invoice)
    assert unique("short")(rows) == "row 1 and row 2 both have 'INV'; row 1 and row 3 both have 'INV'"
    told = unique("upper")(["a"])
    assert told == "row 1 (str) has no field 'upper'"


def test_sentences_are_bounded_and_count_the_rest() -> None:
    told = unique()(["x" * 10_000] * 1000)
    assert told is not None
    assert len(told) <= MESSAGE_MAX
    assert told.endswith("; and 994 more")


def test_file_counts_by_its_size(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"1234")
    assert max_size(4)(tmp_path / "f") is None
    assert max_size(3)(tmp_path / "f") is not None


def test_declarations_that_check_nothing_are_refused() -> None:
    async def later(row: object) -> bool:
        return True

    for declare in (
        lambda: row_count(),
        lambda: total("a", equals=1, tolerance=-1),
        lambda: total("a", equals=1, tolerance=float("nan")),
        lambda: each(later),  # type: ignore[arg-type, return-value]
    ):
        with pytest.raises(BadOption):
            declare()
