"""Reading a journal while somebody writes it, and seals that cover the place of every record."""

from __future__ import annotations

import pytest
from desk import Desk

from milepost import step, task
from milepost.errors import CorruptRecord, StepFailed
from milepost.records.seal import Place, Sealer
from milepost.runtime.opening import READS_MAX, read_snapshot
from milepost.runtime.trust import read_trusted
from milepost.stores.contract import Batch, Head, Outline
from milepost.stores.memory import MemoryStore

SEALS = [bytes([n]) * 32 for n in range(6)]


@step
def one() -> int:
    return 1


@task
def stops() -> int:
    one()
    raise ValueError("stop here")


class Growing(MemoryStore):
    """Gets a sealed record more between the reading of the head and that of the journal, so many times."""

    growths = 0

    def outline(self, run_id: str) -> Outline:
        row = self.run(run_id)
        if self.growths > 0 and row is not None:
            self.growths -= 1
            last = self.records(run_id)[-1]
            sealer, seq = Sealer(run_id, None), row.head.seq + 1
            seal = sealer.seal(last.seal, seq, "", last.kind, last.body)
            head = Head(seq, sealer.head(row.head.seal, seq, "", seal))
            record = type(last)(seq, "", last.kind, last.body, seal)
            self.append(Batch(run_id, 1, [record], head)).wait()
        return super().outline(run_id)


@pytest.fixture
def store() -> Growing:
    store = Growing()
    with pytest.raises(StepFailed):
        stops.options(store=store).run("r")
    return store


@pytest.mark.parametrize("growths", [0, 1, READS_MAX])
def test_a_run_that_grows_while_it_is_read_is_not_taken_for_corrupt(store: Growing, growths: int) -> None:
    """Inspecting takes no lease: between two queries the holder may have written more."""
    store.growths = growths
    assert read_snapshot(store, "r", None).refusal is None
    assert store.growths == 0


def test_a_record_behind_a_head_that_stands_still_is_refused(store: Growing) -> None:
    store._runs["r"].records.append(store.records("r")[-1])
    assert isinstance(read_trusted(store, "r", None).refusal, CorruptRecord)


def places(*chains: str) -> list[Place]:
    return [Place(seq, chain, SEALS[seq]) for seq, chain in enumerate(chains, 1)]


def test_the_head_covers_number_chain_seal_and_order_of_every_record() -> None:
    sealer = Sealer("r", b"key")
    honest = sealer.head_of(places("", "a", ""))
    assert honest is not None
    sealer.check_head(3, honest, places("", "a", ""))
    for found in (places("", "", ""), places("", "b", ""), places("", "a"), places("", "a", "", ""), []):
        with pytest.raises(CorruptRecord):
            sealer.check_head(3, honest, found)
    first, second, third = places("", "a", "")
    for found in ([first, third, second], [second, second, third], [first, second, third._replace(seal=SEALS[0])]):
        with pytest.raises(CorruptRecord):
            sealer.check_head(3, honest, found)
    for other in (Sealer("r2", b"key"), Sealer("r", None), Sealer("r", b"other")):
        assert other.head_of(places("", "a", "")) != honest


class Unreadable:
    """A tool whose signature nobody can read."""

    def __call__(self) -> None: ...

    __signature__ = property(lambda self: 1 // 0)


def test_a_start_that_nothing_was_recorded_of_is_not_blamed_on_the_plan(desk: Desk) -> None:
    """No line of the plan ran: whoever starts it sees what was raised, and the same start begins later."""

    @task(name="with_tools", tools=[Unreadable()])
    def plan() -> int:
        return 1

    with pytest.raises(ZeroDivisionError):
        desk.run(plan)
    assert desk.run(task(name="with_tools")(lambda: 1)) == 1
