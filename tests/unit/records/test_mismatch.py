"""The path of a value that does not fit stays short enough to leave room for what is wrong."""

from __future__ import annotations

import pytest

from milepost.errors import NotEncodable
from milepost.records.canonical import canonical
from milepost.records.mismatch import Mismatch, at_index


def test_a_value_too_deep_says_so_in_a_line() -> None:
    """A circle is as deep as the bound; its path would fill the error."""
    circle: list[object] = []
    circle.append(circle)
    with pytest.raises(NotEncodable, match="levels of nesting") as raised:
        canonical(circle)  # type: ignore[arg-type]
    assert len(str(raised.value)) < 300
    assert "more)" in raised.value.path


def test_a_path_of_usual_depth_is_whole() -> None:
    """Only what nobody would read is counted."""
    mismatch = Mismatch("an int", "a str")
    for index in range(20):
        mismatch.under(at_index(index))
    assert mismatch.path == "$" + "".join(f"[{index}]" for index in reversed(range(20)))
