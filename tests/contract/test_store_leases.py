"""Runs and leases: one holder at a time, growing tokens, the list of runs."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from store_rows import AT, ELSEWHERE, HERE, batch, begin, progress, take_over

from milepost.errors import LeaseLost
from milepost.records.model import RunStatus
from milepost.stores.contract import Held, Holder, Lease, NewRun, Store


def test_a_new_run_is_held_by_its_creator(store: Store) -> None:
    lease = begin(store, seal_name="k1", family="f")
    row = store.run("r")
    assert lease == Lease("r", 1, HERE)
    assert row is not None
    assert (row.task, row.family, row.seal_name, row.started_at) == ("task", "f", "k1", AT)
    assert row.held == Held("r", 1, HERE, 0, AT)
    assert (row.progress.status, row.head.seq, row.cancel) == (RunStatus.RUNNING, 0, None)


def test_an_id_is_taken_once(store: Store) -> None:
    begin(store)
    assert store.create_run(NewRun("r", "other", "r", None, AT, ELSEWHERE)) is None


def test_the_row_says_which_run_is_a_shadow(store: Store) -> None:
    """The list of runs shows it without reading journals."""
    begin(store, "dry", shadow=True)
    begin(store, "wet")
    assert {row.run_id: row.shadow for row in store.runs()} == {"dry": True, "wet": False}


def test_a_second_starter_is_told_who_holds_the_run(store: Store) -> None:
    begin(store)
    held = store.acquire("r", replace(HERE, pid=101))
    assert isinstance(held, Held)
    assert held.holder == HERE


def test_a_released_run_is_acquired_with_the_next_token(store: Store) -> None:
    lease = begin(store)
    store.release(lease)
    row = store.run("r")
    assert row is not None
    assert row.held is None
    assert store.acquire("r", ELSEWHERE) == Lease("r", 2, ELSEWHERE)


@pytest.mark.parametrize("share_a_commit", [True, False])
def test_a_batch_gives_its_lease_back_and_a_later_one_does_not_take_it_again(
    store: Store, share_a_commit: bool
) -> None:
    lease = begin(store)
    given_back = store.append(batch(lease, 1, gives_back=True))
    if not share_a_commit:
        given_back.wait()
    store.append(batch(lease, 2)).wait()
    row = store.run("r")
    assert row is not None
    assert (row.held, row.head.seq) == (None, 2)
    store.release(lease)
    assert store.acquire("r", ELSEWHERE) == Lease("r", 2, ELSEWHERE)
    store.release(lease)
    assert isinstance(store.acquire("r", HERE), Held)


def test_of_runs_that_share_a_commit_each_gives_back_its_own_lease(store: Store) -> None:
    leases = [begin(store, run_id) for run_id in ("a", "b", "c")]
    tickets = [store.append(batch(lease, 1, gives_back=lease.run_id == "b")) for lease in leases]
    for ticket in tickets:
        ticket.wait()
    rows = [store.run(run_id) for run_id in ("a", "b", "c")]
    assert [row is not None and row.held is not None for row in rows] == [True, False, True]


def test_a_batch_that_is_fenced_gives_nobodys_lease_back(store: Store) -> None:
    old = begin(store)
    new = take_over(store)
    with pytest.raises(LeaseLost):
        store.append(batch(old, 1, gives_back=True)).wait()
    store.release(old)
    row = store.run("r")
    assert row is not None
    assert row.held is not None
    assert row.held.token == new.token


def test_a_holder_elsewhere_is_succeeded_only_after_it_stood_still(store: Store) -> None:
    lease = begin(store, holder=ELSEWHERE)
    seen = store.acquire("r", HERE)
    assert isinstance(seen, Held)
    assert store.renew(lease, "2026-11-01T10:00:10Z")
    moved = store.acquire("r", HERE, still=seen)
    assert isinstance(moved, Held)
    assert (moved.beat, moved.beat_at) == (1, "2026-11-01T10:00:10Z")
    assert store.acquire("r", HERE, still=moved) == Lease("r", 2, HERE)


def test_a_smaller_token_neither_renews_nor_releases(store: Store) -> None:
    old = begin(store)
    new = take_over(store)
    assert not store.renew(old, AT)
    store.release(old)
    row = store.run("r")
    assert row is not None
    assert row.held is not None
    assert row.held.token == new.token


def test_renewing_an_expired_lease_nobody_took_keeps_it(store: Store) -> None:
    lease = begin(store)
    assert all(store.renew(lease, AT) for _ in range(3))
    row = store.run("r")
    assert row is not None
    assert row.held is not None
    assert row.held.beat == 3


def test_a_run_that_is_not_there_is_neither_read_nor_acquired(store: Store) -> None:
    assert store.run("nobody") is None
    assert store.acquire("nobody", HERE) is None
    assert not store.renew(Lease("nobody", 1, HERE), AT)
    store.release(Lease("nobody", 1, HERE))


def test_of_many_starters_exactly_one_gets_the_run(store: Store) -> None:
    store.release(begin(store))
    got: list[object] = []

    def start(pid: int) -> None:
        got.append(store.acquire("r", Holder("here", "boot-1", pid, AT)))

    threads = [threading.Thread(target=start, args=(pid,)) for pid in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(one, Lease) for one in got) == 1


def test_runs_are_listed_newest_first_and_paged(store: Store) -> None:
    for n in range(5):
        begin(store, f"r{n}", at=f"2026-11-0{n // 2 + 1}T00:00:00Z")
    assert [row.run_id for row in store.runs(limit=2)] == ["r4", "r3"]
    assert [row.run_id for row in store.runs(limit=2, before="r3")] == ["r2", "r1"]
    assert [row.run_id for row in store.runs(before="r0")] == []


def test_runs_are_filtered_by_task_status_and_family(store: Store) -> None:
    begin(store, "a", task="one", family="f")
    done = begin(store, "b", task="one")
    begin(store, "c", task="two", family="f")
    store.append(batch(done, 1, progress=progress(RunStatus.DONE))).wait()
    assert [row.run_id for row in store.runs(task="one")] == ["b", "a"]
    assert [row.run_id for row in store.runs(status=RunStatus.DONE)] == ["b"]
    assert [row.run_id for row in store.runs(family="f")] == ["c", "a"]
    assert store.runs(task="one", family="f", status=RunStatus.DONE) == []


def test_runs_are_searched_by_what_the_list_shows_and_no_text_is_a_pattern(store: Store) -> None:
    """Somebody looks for a part of an id or of a sentence; `%`, `_` and quotes are themselves."""
    begin(store, "october-1", task="reconcile")
    done = begin(store, "50%_'x", task="other")
    store.append(batch(done, 1, progress=progress(RunStatus.DONE))).wait()
    assert [row.run_id for row in store.runs(search="OCTOBER")] == ["october-1"]
    assert [row.run_id for row in store.runs(search="concil")] == ["october-1"]
    assert [row.run_id for row in store.runs(search="%_'")] == ["50%_'x"]
    assert store.runs(search="o%r") == []


def test_the_row_of_a_run_says_what_it_took_so_far(store: Store) -> None:
    """The list of runs shows cost without reading a journal."""
    lease = begin(store, "r")
    store.append(batch(lease, 1, progress=progress(RunStatus.RUNNING, cost="0.0123", tokens=1500))).wait()
    row = store.run("r")
    assert row is not None
    assert (row.progress.cost, row.progress.tokens) == ("0.0123", 1500)
