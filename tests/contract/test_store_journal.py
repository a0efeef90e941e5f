"""Appending and reading: order, prefix, fence, and what a ticket promises."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from store_rows import AT, artifact, batch, begin, progress, record, seqs, take_over

from milepost.errors import LeaseLost, StoreUnavailable
from milepost.records.model import RunStatus
from milepost.stores.contract import Batch, Head, Held, Lease, Store


def test_a_waited_batch_is_read_back_byte_for_byte(store: Store) -> None:
    lease = begin(store)
    odd = record(1, chain="outer/é[1]", body=b'{"a":"\x00\xff"}')
    store.append(batch(lease, 1, records=[odd, record(2)])).wait()
    assert store.records("r") == [odd, record(2)]


def test_batches_that_were_not_waited_for_come_before_the_one_that_was(store: Store) -> None:
    """One commit makes a checkpoint and the next start durable; order is what a resume relies on."""
    lease = begin(store)
    store.append(batch(lease, 1, 2))
    store.append(batch(lease, 3))
    store.append(batch(lease, 4)).wait()
    assert seqs(store) == [1, 2, 3, 4]


def test_closing_commits_what_nobody_waited_for(store: Store, reopened: Callable[[], Store]) -> None:
    lease = begin(store)
    store.append(batch(lease, 1, 3))
    assert seqs(reopened()) == [1, 2, 3]


def test_releasing_commits_what_nobody_waited_for(store: Store) -> None:
    lease = begin(store)
    store.append(batch(lease, 1))
    store.release(lease)
    assert seqs(store) == [1]


def test_a_callback_hears_once_of_a_batch_nobody_waits_for(store: Store) -> None:
    lease = begin(store)
    heard: list[BaseException | None] = []
    told = threading.Event()
    ticket = store.append(batch(lease, 1))
    ticket.add_done_callback(lambda error: (heard.append(error), told.set())[0])
    assert told.wait(30)
    ticket.wait()
    ticket.add_done_callback(heard.append)
    assert heard == [None, None]
    assert seqs(store) == [1]


def test_an_older_token_writes_nothing_and_harms_no_other_run(store: Store) -> None:
    """A paused worker that wakes after its lease expired is refused by the store, in a shared commit too."""
    old, other = begin(store), begin(store, "other")
    store.append(batch(old, 1)).wait()
    take_over(store)
    lost = store.append(batch(old, 2))
    lost_too = store.append(batch(old, 3))
    kept = store.append(batch(other, 1))
    for ticket in (lost, lost_too):
        with pytest.raises(LeaseLost):
            ticket.wait()
    kept.wait()
    with pytest.raises(LeaseLost):
        store.append(batch(old, 2)).wait()
    assert (seqs(store), seqs(store, "other")) == ([1], [1])


def test_what_an_older_token_appended_before_is_lost_when_it_was_not_durable(store: Store) -> None:
    old = begin(store)
    new = take_over(store)
    with pytest.raises(LeaseLost):
        store.append(batch(old, 1)).wait()
    store.append(batch(new, 1)).wait()
    assert seqs(store) == [1]


def test_a_run_nobody_created_takes_no_batch(store: Store) -> None:
    lease = begin(store)
    with pytest.raises(LeaseLost):
        store.append(batch(replace(lease, run_id="nobody"), 1)).wait()


def test_a_gap_is_refused_and_nothing_more_of_that_run_is_written(store: Store) -> None:
    """Records become durable as a prefix; after a failed append nothing is written from memory."""
    lease, other = begin(store), begin(store, "other")
    gap, after, fine = store.append(batch(lease, 2)), store.append(batch(lease, 1)), store.append(batch(other, 1))
    for ticket in (gap, after):
        with pytest.raises(StoreUnavailable):
            ticket.wait()
    fine.wait()
    with pytest.raises(StoreUnavailable):
        store.append(batch(lease, 1)).wait()
    assert (seqs(store), seqs(store, "other")) == ([], [1])


def test_a_run_that_failed_goes_on_after_it_was_acquired_anew(store: Store) -> None:
    lease = begin(store)
    with pytest.raises(StoreUnavailable):
        store.append(batch(lease, 7)).wait()
    store.append(batch(take_over(store), 1)).wait()
    assert seqs(store) == [1]


def test_a_record_number_is_never_written_twice(store: Store) -> None:
    lease = begin(store)
    store.append(batch(lease, 1)).wait()
    with pytest.raises(StoreUnavailable):
        store.append(batch(lease, 1)).wait()
    assert places(store) == [(1, "", record(1).seal)]


def test_one_chain_is_read_without_the_others(store: Store) -> None:
    lease = begin(store)
    mixed = [record(1), record(2, chain="a"), record(3, chain="a/b"), record(4), record(5, chain="a")]
    store.append(batch(lease, 1, records=mixed)).wait()
    assert seqs(store, chain="") == [1, 4]
    assert seqs(store, chain="a") == [2, 5]
    assert seqs(store, chain="a", after=2) == [5]
    assert seqs(store, after=3) == [4, 5]
    assert seqs(store, chain="c") == []


def test_places_say_what_is_really_there(store: Store) -> None:
    lease = begin(store)
    assert places(store) == []
    mixed = [record(1), record(2, chain="a")]
    store.append(batch(lease, 1, records=mixed)).wait()
    assert places(store) == [(1, "", mixed[0].seal), (2, "a", mixed[1].seal)]
    assert store.outline("nobody") == ([], [], {})


def test_an_outline_has_the_records_of_the_task_whole(store: Store) -> None:
    lease = begin(store)
    mixed = [record(1), record(2, chain="a"), record(3)]
    store.append(batch(lease, 1, records=mixed)).wait()
    assert store.outline("r").records == [mixed[0], mixed[2]]


def test_an_outline_brings_artifacts_only_as_they_are(store: Store) -> None:
    """A resume takes from it what it would else ask for one by one; a store may leave any out."""
    lease, small, large = begin(store), artifact(b"[1]"), artifact(b"x" * 60_000)
    for seq, one in enumerate((small, large), 1):
        store.append(batch(lease, seq, records=[record(seq, kind="step_verified")], artifacts=[one])).wait()
    there = {one.digest: one.data for one in (small, large)}
    assert store.outline("r").small.items() <= there.items()
    assert store.artifacts("r", list(there)).keys() == there.keys()


def places(store: Store) -> list[tuple[int, str, bytes]]:
    return [tuple(place) for place in store.outline("r").places]


def test_head_and_progress_move_with_the_batch(store: Store) -> None:
    lease = begin(store)
    waiting = progress(RunStatus.WAITING, verified_count=2, applied_count=1, next_action="Post.", detail="until noon")
    store.append(batch(lease, 1, 2, progress=waiting))
    store.append(batch(lease, 3)).wait()
    row = store.run("r")
    assert row is not None
    assert (row.progress, row.head) == (waiting, Head(3, b"h" * 31 + b"\x03"))


def test_artifacts_come_with_their_batch_and_are_found_by_digest(store: Store) -> None:
    lease, other = begin(store), begin(store, "other")
    one, two = artifact(b"[1]"), artifact(b"[2]")
    store.append(batch(lease, 1, artifacts=[one, two, one])).wait()
    store.append(batch(lease, 2, artifacts=[one])).wait()
    store.append(batch(other, 1)).wait()
    assert store.artifacts("r", [two.digest, "0" * 64, one.digest]) == {one.digest: one, two.digest: two}
    assert store.artifacts("other", [one.digest]) == {}
    assert store.artifacts("nobody", [one.digest]) == {}


def test_a_store_that_is_closed_takes_nothing(store: Store) -> None:
    lease = begin(store)
    store.close()
    store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        store.append(batch(lease, 1))


def test_many_threads_each_find_their_own_run_whole(store: Store) -> None:
    leases = [begin(store, f"r{n}") for n in range(12)]

    def work(lease: Lease) -> None:
        for seq in range(1, 31, 3):
            store.append(batch(lease, seq, 2))
            store.append(batch(lease, seq + 2)).wait()

    threads = [threading.Thread(target=work, args=(lease,)) for lease in leases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(seqs(store, lease.run_id) == list(range(1, 31)) for lease in leases)


def test_many_runs_that_share_a_commit_are_each_written_whole(store: Store) -> None:
    """A store may write them in few statements: nothing of one run lands in another, whatever each brings."""
    leases = [begin(store, f"r{n}") for n in range(11)]
    shown = [progress(RunStatus.WAITING, verified_count=n, next_action=f"Post {n}.") for n in range(11)]
    kept = [[artifact(b"%d" % (n * 10 + m)) for m in range(n % 4)] for n in range(11)]
    for n, lease in enumerate(leases):
        store.append(batch(lease, 1, 1 + n % 3, artifacts=kept[n], progress=shown[n] if n % 2 else None))
    store.append(batch(leases[10], 3)).wait()
    for n, lease in enumerate(leases):
        last = 3 if n == 10 else 1 + n % 3
        row, before = store.run(lease.run_id), progress(RunStatus.RUNNING)
        assert row is not None
        assert store.records(lease.run_id) == [record(seq) for seq in range(1, last + 1)]
        assert (row.head.seq, row.progress) == (last, shown[n] if n % 2 else before)
        assert store.artifacts(lease.run_id, [a.digest for each in kept for a in each]) == {
            a.digest: a for a in kept[n]
        }


@pytest.mark.parametrize("wrong", [1, 3], ids=["again", "gap"])
def test_a_run_that_does_not_fit_is_left_out_of_a_shared_commit(store: Store, wrong: int) -> None:
    leases = [begin(store, f"r{n}") for n in range(5)]
    bad = leases[2]
    store.append(batch(bad, 1)).wait()
    tickets = [store.append(batch(lease, wrong if lease is bad else 1)) for lease in leases]
    with pytest.raises(StoreUnavailable):
        tickets[2].wait()
    for ticket in tickets[:2] + tickets[3:]:
        ticket.wait()
    assert [seqs(store, lease.run_id) for lease in leases] == [[1]] * 5


def test_reading_while_a_batch_waits_to_be_written_sees_what_was_durable(store: Store) -> None:
    lease = begin(store)
    store.append(batch(lease, 1)).wait()
    store.append(batch(lease, 2))
    assert seqs(store)[:1] == [1]
    assert store.renew(lease, AT)
    row = store.run("r")
    assert row is not None
    assert isinstance(row.held, Held)
    assert row.held.beat == 1


def test_an_empty_batch_may_carry_progress_alone(store: Store) -> None:
    lease = begin(store)
    store.append(batch(lease, 1)).wait()
    done = progress(RunStatus.DONE)
    store.append(Batch("r", lease.token, [], Head(1, b"h" * 32), done)).wait()
    row = store.run("r")
    assert row is not None
    assert row.progress == done


def test_a_long_journal_can_be_read_a_page_at_a_time(store: Store) -> None:
    """An export of 100,000 records holds one page of them, not all."""
    lease = begin(store)
    store.append(batch(lease, 1, 4)).wait()
    assert [line.seq for line in store.records("r", after=1, limit=2)] == [2, 3]
    assert [line.seq for line in store.records("r", chain="", limit=1)] == [1]
    assert [line.seq for line in store.records("r", after=3, limit=9)] == [4]
