"""What a console says when its store is away, another, damaged or large; and how little it reads to list runs."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx2 as httpx
import pytest
from running import Console, a_console, question_of, send_answer

from milepost.notify.outbox import Outbox
from milepost.records.model import RunStatus
from milepost.stores.contract import Batch, Head, Holder, NewRun, Progress, StoredRecord
from milepost.stores.sqlite.store import SqliteStore
from milepost.views.opened import now
from milepost.views.runs import run_rows

AT = "2026-11-01T00:00:00.000000+00:00"


@pytest.fixture(scope="module")
def moving(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """Return a console over a copy that a test may damage."""
    folder = tmp_path_factory.mktemp("moving")
    shutil.copy(filled, folder / "store.sqlite")
    with a_console(folder / "store.sqlite") as running:
        yield running


def test_a_store_that_is_gone_or_another_or_damaged_is_told_and_found_again(moving: Console) -> None:
    """A page that says what to do, never a traceback; and no restart once the store is there again."""
    aside = moving.store.with_name("aside.sqlite")
    with closing(moving.visitor()) as visitor:
        assert visitor.get("/run", params={"id": "done"}).status_code == 200
        os.rename(moving.store, aside)
        _is_told(visitor, 409, "store-missing")
        SqliteStore(moving.store, create=True).close()
        assert visitor.get("/runs.json").json()["runs"] == []
        moving.store.unlink()
        for beside in moving.store.parent.glob("store.sqlite-*"):
            beside.unlink()
        moving.store.write_bytes(b"no database at all" * 1000)
        _is_told(visitor, 409, "foreign-database")
        moving.store.unlink()
        os.rename(aside, moving.store)
        assert visitor.get("/run", params={"id": "done"}).status_code == 200


def _is_told(visitor: httpx.Client, status: int, code: str) -> None:
    for page in ("/inbox", "/runs", "/run?id=done", "/health", "/map"):
        answer = visitor.get(page)
        assert answer.status_code == status, page
        assert code in answer.text
        assert "Traceback" not in answer.text
        told = visitor.get(page.replace("?", ".json?") if "?" in page else f"{page}.json").json()["error"]
        assert told["code"] == code
        assert told["hint"]


def test_an_altered_run_is_shown_as_far_as_it_can_be_trusted(moving: Console) -> None:
    """SEC-11. Its page says which record cannot be trusted; the others' pages are as before."""
    with closing(sqlite3.connect(moving.store)) as raw, raw:
        raw.execute("UPDATE journal SET body = CAST(body || ' ' AS BLOB) WHERE seq = 4")
    with closing(moving.visitor()) as visitor:
        answer = visitor.get("/run", params={"id": "done"})
        assert answer.status_code == 200
        assert "corrupt-record" in answer.text
        assert "corrupt-record" in visitor.get("/journal", params={"id": "done"}).text
        assert visitor.get("/map", params={"run": "done"}).status_code == 409
        assert visitor.get("/seals", params={"id": "done"}).status_code == 200
        assert visitor.get("/runs").status_code == 200


def test_a_run_sealed_with_a_key_that_is_not_here_is_neither_trusted_nor_answered(
    console: Console, visitor: httpx.Client
) -> None:
    """Its pages say which key is missing; nobody answers for it, and the other runs are as before."""
    for page in ("/run", "/journal", "/seals", "/map"):
        answer = visitor.get(page, params={"id": "sealed", "run": "sealed"})
        assert answer.status_code in (200, 409), page
        assert "sealed with" in answer.text, page
    question = question_of(visitor, "sealed")
    refused = send_answer(visitor, question=question, choice="approve")
    assert refused.status_code == 409
    assert "MILEPOST_SEAL_KEY" in refused.text
    assert visitor.get("/health").status_code == 200


class CountedStore(SqliteStore):
    """Counts what is read."""

    reads = 0

    def records(self, *args: object, **more: object) -> list[StoredRecord]:
        type(self).reads += 1
        return super().records(*args, **more)  # type: ignore[arg-type]

    def questions(self, *args: object, **more: object) -> list[object]:  # type: ignore[override]
        type(self).reads += 1
        return super().questions(*args, **more)  # type: ignore[arg-type, return-value]


def test_listing_runs_reads_no_journal_and_asks_for_questions_once(tmp_path: Path) -> None:
    """Ten thousand runs are a page of fifty rows, whatever they wait for."""
    store = CountedStore(tmp_path / "store.sqlite", create=True)
    holder = Holder("elsewhere", "boot", 1, AT)
    for number, status in enumerate([RunStatus.WAITING, RunStatus.ASKING, RunStatus.RUNNING, RunStatus.DONE] * 5):
        lease = store.create_run(NewRun(f"r{number}", "t", f"r{number}", None, AT, holder))
        assert lease is not None
        detail = "until 2027-01-01T00:00:00.000000+00:00: later" if status is RunStatus.WAITING else ""
        record = StoredRecord(1, "", "run_started", b"{}", bytes(32))
        progress = Progress(status, AT, detail=detail)
        store.append(Batch(lease.run_id, lease.token, [record], Head(1, bytes(32)), progress)).wait()
        store.release(lease)
    rows = run_rows(store, store.runs())
    assert {row["stands"] for row in rows} == {"waiting", "answered", "died", "done"}
    assert store.reads == 1
    store.close()


def test_notifications_that_reached_nobody_are_shown_in_the_inbox(moving: Console) -> None:
    """A question that nobody was told of waits in vain; the page says so, and why."""
    outbox = Outbox.beside(str(moving.store))
    outbox.again(now())  # makes it
    with closing(sqlite3.connect(outbox.path, isolation_level=None)) as raw:
        raw.execute(
            "INSERT INTO notifications (question_id, reason, channel, run_id, state, attempts, next_at, last_error) "
            "VALUES ('q-1', 'asked', 'mail <b>', 'r', 'failed', 8, '2026-11-01T00:00:00+00:00', 'refused <i>')"
        )
    with closing(moving.visitor()) as visitor:
        page = visitor.get("/inbox").text
        assert "1 notification did not go out" in page
        assert "mail &lt;b&gt;: refused &lt;i&gt;" in page
        told = visitor.get("/inbox.json").json()["not_told"]
        assert [(one["channel"], one["attempts"]) for one in told] == [("mail <b>", 8)]
