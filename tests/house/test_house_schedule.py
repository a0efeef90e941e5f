"""The order in which workers get the tests: every test once, long files whole and first."""

from __future__ import annotations

import sys

import pytest
from source_tree import ROOT

sys.path.append(str(ROOT / "tests"))

from schedule import SECONDS, dealt

LONG = list(SECONDS)


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_every_test_is_dealt_once_and_each_stretch_begins_with_a_long_file(workers: int) -> None:
    """A test that nobody gets would pass for ever."""
    files = [*(f"unit/test_{number}.py" for number in range(200) for _ in range(5)), *(file for file in LONG * 3)]
    order = dealt(files, list(enumerate(files)), workers)
    assert sorted(order) == list(enumerate(files))
    stretches = [order[len(order) * number // workers :] for number in range(workers)]
    assert [stretch[0][1] in SECONDS for stretch in stretches] == [True] * workers
    assert [file for number, (_, file) in enumerate(order) if file in LONG and order[number - 1][1] != file] == [
        file for _, file in dict.fromkeys((0, file) for _, file in order if file in LONG)
    ]


def test_every_file_that_is_said_to_be_long_is_there() -> None:
    """A file that was renamed would be dealt like a short one."""
    assert [file for file in SECONDS if not (ROOT / "tests" / file).exists()] == []
