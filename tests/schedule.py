"""Which tests each worker begins with: long files first, so that nobody waits at the end for one that began last.

`pytest --dist worksteal` gives each worker one stretch of the list, and what is left of a stretch to whoever is done.
A file that sets up much stays together: begun by two workers, it would be set up twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import pytest

SECONDS = {
    "crash/test_every_point.py": 60,
    "drill/test_drill_good.py": 30,
    "soak/test_slice_below.py": 50,
    "soak/test_slice_people.py": 35,
    "acceptance/invoices/test_demo.py": 40,
    "acceptance/invoices/test_drill_month.py": 20,
    "acceptance/invoices/test_reconcile.py": 15,
    "drill/test_drill_cli.py": 15,
    "console/test_browser_pages.py": 20,
    "console/test_browser_people.py": 20,
}
"""About how long each long file takes; the others take less."""

Item = TypeVar("Item")


def dealt(files: Sequence[str], items: Sequence[Item], workers: int) -> list[Item]:
    """Return the items in an order whose stretches, one per worker, each begin with its share of the long files."""
    hands: list[list[Item]] = [[] for _ in range(workers)]
    loads = [0] * workers
    for file, seconds in sorted(SECONDS.items(), key=lambda pair: -pair[1]):
        lightest = loads.index(min(loads))
        hands[lightest] += [item for its, item in zip(files, items, strict=True) if its == file]
        loads[lightest] += seconds
    rest = [item for its, item in zip(files, items, strict=True) if its not in SECONDS]
    for number, hand in enumerate(hands):
        size = (len(items) - sum(map(len, hands[:number]))) // (workers - number)
        taken = max(0, size - len(hand))
        hand += rest[:taken]
        del rest[:taken]
    return [item for hand in hands for item in hand] + rest


def sort(items: list[pytest.Item], workers: int) -> None:
    """Sort collected tests in place."""
    items[:] = dealt([item.nodeid.partition("::")[0].removeprefix("tests/") for item in items], items, workers)
