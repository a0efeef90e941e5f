"""What is read back when a run is done: every record of every page, whether the steps nest or not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from nesting import flat, nested

from milepost.errors import CorruptRecord
from milepost.runtime import journal
from milepost.stores.contract import StoredRecord
from milepost.stores.memory import MemoryStore


class Spoilt(MemoryStore):
    """Says of one record something else than was appended, a page of two records at a time."""

    def __init__(self, spoil: Callable[[StoredRecord], list[StoredRecord]]) -> None:
        super().__init__()
        self._spoil = spoil

    def records(
        self, run_id: str, *, chain: str | None = None, after: int = 0, limit: int | None = None
    ) -> list[StoredRecord]:
        every = (said for line in super().records(run_id, chain=chain) for said in self._spoil(line))
        return [line for line in every if line.seq > after][:limit]


@pytest.fixture(autouse=True)
def pages_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "READ_BACK_MAX", 2)


@pytest.mark.parametrize(("plan", "count"), [(flat, 6), (nested, 10)])
def test_a_run_that_lost_a_record_or_a_word_is_not_done(plan: object, count: int) -> None:
    assert start(plan, lambda line: [line]) == (2 if plan is flat else 3)
    for seq in range(1, count + 1):
        with pytest.raises(CorruptRecord):
            start(plan, lambda line, lost=seq: [line] if line.seq != lost else [])
        with pytest.raises(CorruptRecord):
            start(plan, lambda line, bad=seq: [line._replace(seal=bytes(32)) if line.seq == bad else line])
        with pytest.raises(CorruptRecord):
            start(plan, lambda line, moved=seq: [line._replace(chain="x") if line.seq == moved else line])


@pytest.mark.parametrize("seq", range(1, 7))
def test_a_run_whose_record_says_something_else_is_not_done(seq: int) -> None:
    with pytest.raises(CorruptRecord):
        start(flat, lambda line: [line._replace(body=line.body + b" ") if line.seq == seq else line])


def test_a_run_with_a_record_too_many_is_not_done() -> None:
    with pytest.raises(CorruptRecord):
        start(flat, lambda line: [line, line._replace(seq=7)] if line.seq == 6 else [line])


def start(plan: object, spoil: Callable[[StoredRecord], list[StoredRecord]]) -> object:
    return plan.options(store=Spoilt(spoil)).run("r")  # type: ignore[attr-defined]
