"""Classes of records compare and show themselves as a data class would, which would compile that for each of them."""

from __future__ import annotations

from dataclasses import dataclass, field, make_dataclass

import pytest

from milepost.records.frozen import frozen, frozen_by_name


@frozen
class Pair:
    first: int
    second: list[int] = field(default_factory=list)
    note: str = field(default="", compare=False, repr=False)


@frozen_by_name
class Other:
    first: int


def test_equal_fields_make_equal_ones_of_one_class_only() -> None:
    assert Pair(1, [2], "a") == Pair(1, [2], "b")
    assert Pair(1, [2]) != Pair(1, [3])
    assert Other(first=1) != Pair(1)
    assert Pair(1) != (1, [])


def test_one_is_shown_as_a_data_class_is() -> None:
    plain = dataclass(make_dataclass("Pair", [("first", int), ("second", list)]))
    assert repr(Pair(1, [2], "unseen")) == repr(plain(1, [2])).replace("types.", "")
    assert repr(Other(first=1)) == "Other(first=1)"


def test_one_has_no_hash_as_its_fields_are_not_protected() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Pair(1))
