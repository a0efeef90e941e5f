"""Questions, answers, requests to cancel, claims and pruning."""

from __future__ import annotations

from dataclasses import replace

import pytest
from store_rows import AT, ELSEWHERE, artifact, batch, begin, claim, progress, question, record, seqs

from milepost.errors import LeaseLost, QuestionUnknown
from milepost.records.model import RunStatus
from milepost.records.rows import AnswerRow, CancelRow
from milepost.stores.contract import Held, NewRun, Store

YES = AnswerRow("q1", "r", "again", "ada", AT, note="mended", ref="R-1", result=b"[1]", seal=b"s" * 32)


def test_a_question_is_open_until_its_row_is_closed(store: Store) -> None:
    lease, other = begin(store), begin(store, "other")
    store.append(batch(lease, 1, questions=[question(lease)])).wait()
    store.append(batch(other, 1, questions=[question(other, "q2")])).wait()
    assert [q.question_id for q in store.questions()] == ["q1", "q2"]
    store.append(batch(lease, 2, questions=[question(lease, closed=True)])).wait()
    assert store.questions("r") == []
    assert store.questions("r", closed=True) == [question(lease, closed=True)]
    assert store.questions() == [question(other, "q2")]


def test_one_question_and_its_answers_are_read_without_the_others(store: Store) -> None:
    """Two thousand items are answered one by one: each reads its own question, open or not."""
    lease, other = begin(store), begin(store, "other")
    store.append(batch(lease, 1, questions=[question(lease), question(lease, "q2", closed=True)])).wait()
    store.append(batch(other, 1, questions=[question(other, "q3")])).wait()
    assert store.questions(question_id="q1") == [question(lease)]
    assert store.questions(question_id="q2") == [question(lease, "q2", closed=True)]
    assert store.questions(question_id="q4") == []
    second = replace(YES, question_id="q2")
    store.answer(YES), store.answer(second), store.answer(replace(YES, place=0))
    assert store.answers("r", "q1") == [YES, replace(YES, place=0)]
    assert (store.answers("r", "q2"), store.answers("other", "q1"), store.answers("r", "q4")) == ([second], [], [])


def test_what_the_journal_asks_is_told_by_its_exact_content(store: Store) -> None:
    """In the task's own chain of that run, and of no other kind."""
    lease, other = begin(store), begin(store, "other")
    records = [
        record(1, kind="question_asked", body=b"[1]"),
        record(2, kind="step_started", body=b"[2]"),
        record(3, kind="question_asked", body=b"[3]", chain="match"),
    ]
    store.append(batch(lease, 1, records=records)).wait()
    store.append(batch(other, 1)).wait()
    assert [store.asks("r", body) for body in (b"[1]", b"[2]", b"[3]", b"[1] ")] == [True, False, False, False]
    assert not store.asks("other", b"[1]")


def test_the_first_answer_stands_and_a_later_one_is_kept(store: Store) -> None:
    lease = begin(store)
    store.append(batch(lease, 1, questions=[question(lease)])).wait()
    later = replace(YES, choice="stop", by="bob", ref=None, result=None)
    assert store.answer(YES) == YES
    assert store.answer(later) == YES
    assert store.answers("r") == [YES]
    kept = replace(later, place=0)
    assert store.answer(kept) == kept
    assert store.answer(kept) == kept
    assert store.answers("r") == [YES, kept, kept]
    assert store.answers("other") == []


def test_each_place_among_the_answers_is_taken_once(store: Store) -> None:
    """Two people approve at once: one of them finds the place taken, looks again and takes the next."""
    lease = begin(store)
    store.append(batch(lease, 1, questions=[question(lease)])).wait()
    second = replace(YES, by="bob", place=2, request=b"{}", door="console", role="finance")
    assert store.answer(YES) == YES
    assert store.answer(second) == second
    assert store.answer(replace(second, by="eve")) == second
    assert store.answers("r") == [YES, second]


def test_a_question_nobody_asked_takes_no_answer(store: Store) -> None:
    lease, _ = begin(store), begin(store, "other")
    store.append(batch(lease, 1, questions=[question(lease)])).wait()
    for wrong in (replace(YES, question_id="q9"), replace(YES, run_id="other")):
        with pytest.raises(QuestionUnknown):
            store.answer(wrong)
    assert store.answers("r") == []


def test_the_first_request_to_cancel_stands(store: Store) -> None:
    begin(store)
    first = CancelRow("r", "ada", AT, "wrong month", seal=b"s" * 32)
    store.cancel(first)
    store.cancel(CancelRow("r", "bob", "2026-11-02T00:00:00Z"))
    row = store.run("r")
    assert row is not None
    assert row.cancel == first


def test_a_key_has_one_owner_whoever_asks_later(store: Store) -> None:
    lease, other = begin(store), begin(store, "other")
    assert store.claim(claim(lease), lease.token) == claim(lease)
    assert store.claim(claim(other), other.token) == claim(lease)
    assert store.claim(claim(lease, path="again"), lease.token) == claim(lease)


def test_a_key_is_taken_over_only_from_the_named_run(store: Store) -> None:
    lease, other, third = begin(store), begin(store, "other"), begin(store, "third")
    store.claim(claim(lease), lease.token)
    assert store.claim(claim(other), other.token, instead_of="third") == claim(lease)
    assert store.claim(claim(other), other.token, instead_of="r") == claim(other)
    assert store.claim(claim(third), third.token, instead_of="r") == claim(other)


def test_the_owner_settles_its_claim_with_the_outcome(store: Store) -> None:
    """The row is written whole: its seal covers all of it."""
    lease, other = begin(store), begin(store, "other")
    store.claim(claim(lease), lease.token)
    ended = replace(claim(lease), outcome="applied", ref="A-7", result=b"{}", media_type="application/json")
    ended = replace(ended, path="again", request_digest="e" * 64, at="2026-11-02T00:00:00Z", seal=b"s" * 32)
    store.append(batch(lease, 1, claims=[ended])).wait()
    assert store.claim(claim(other), other.token) == ended


def test_a_smaller_token_claims_nothing(store: Store) -> None:
    old = begin(store)
    seen = store.acquire("r", ELSEWHERE)
    assert isinstance(seen, Held)
    store.acquire("r", ELSEWHERE, still=seen)
    with pytest.raises(LeaseLost):
        store.claim(claim(old), old.token)
    other = begin(store, "other")
    assert store.claim(claim(other), other.token) == claim(other)


def test_pruning_takes_whole_ended_runs_and_keeps_claims(store: Store) -> None:
    lease, live = begin(store), begin(store, "live")
    kept = artifact(b"[1]")
    store.claim(claim(lease), lease.token)
    done = batch(lease, 1, artifacts=[kept], questions=[question(lease)], progress=progress(RunStatus.DONE))
    store.append(done).wait()
    store.append(batch(live, 1)).wait()
    store.answer(YES)
    assert store.prune(["r", "live", "nobody"], AT) == 1
    assert store.run("r") is None
    assert (seqs(store), store.questions(closed=True), store.answers("r")) == ([], [], [])
    assert store.artifacts("r", [kept.digest]) == {}
    assert store.claim(claim(live), live.token) == claim(lease)
    assert seqs(store, "live") == [1]


def test_the_id_of_a_pruned_run_stays_taken(store: Store) -> None:
    """Its idempotency keys may be known to providers: a new run of the same id would send them again."""
    lease = begin(store)
    store.append(batch(lease, 1, progress=progress(RunStatus.CANCELLED))).wait()
    store.prune(["r"], AT)
    assert store.create_run(NewRun("r", "task", "r", None, AT, ELSEWHERE)) is None
    assert [store.was_pruned("r"), store.was_pruned("another")] == [True, False]


def test_a_store_in_order_has_nothing_to_complain_of(store: Store) -> None:
    lease = begin(store)
    store.append(batch(lease, 1)).wait()
    store.release(lease)
    assert [finding for finding in store.check() if not finding.ok] == []
