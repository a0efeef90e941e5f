"""The report as CSV, which people open in a spreadsheet: what a model wrote must stay text there."""

from __future__ import annotations

import csv
import io

import pytest

from milepost.cli.shadow import HEADERS, _csv


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        ("+1+1", "'+1+1"),
        ("@SUM", "'@SUM"),
        ("-2.50", "-2.50"),
        ("-x", "'-x"),
        ('a "b", c\nd', 'a "b", c\nd'),
        ("", ""),
    ],
)
def test_no_cell_is_a_formula_and_each_comes_back(capsys: pytest.CaptureFixture[str], cell: str, shown: str) -> None:
    _csv(HEADERS, iter([("agreed", "post", "INV-1", "", cell, "x")]))
    heading, row = csv.reader(io.StringIO(capsys.readouterr().out))
    assert tuple(heading) == HEADERS
    assert row[4] == shown
