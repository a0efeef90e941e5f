"""The outbox: one row for each notification, in a small SQLite file beside the store.

A row is claimed before it is sent, so that of several processes one sends it; a claim runs out, so that one whose
sender died is sent by another. So each is sent at least once, and twice only when a sender dies between sending and
recording that, or sends for longer than its claim lasts. Knows no channel and no clock.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

from milepost.notify.due import Due, backoff
from milepost.records.times import format_time
from milepost.stores.sqlite.faults import translated
from milepost.stores.sqlite.queries import read_queries

SQL = read_queries((Path(__file__).parent / "queries.sql").read_text("utf-8"))
BUSY_S = 5.0
"""Seconds to wait for another process's transaction."""
ERROR_LENGTH_MAX = 300
"""Characters of an error that are kept."""


class State(StrEnum):
    """Where a notification stands."""

    WAITING = "waiting"
    SENT = "sent"
    FAILED = "failed"  # given up after so many attempts
    DROPPED = "dropped"  # the question was answered first


@dataclass(frozen=True, slots=True)
class Notification:
    """One row of the outbox."""

    question_id: str
    reason: str
    channel: str
    run_id: str
    state: State
    attempts: int
    next_at: str
    sent_at: str | None
    last_error: str


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to send one notification for a while."""

    due: Due
    by: str
    attempt: int


class Outbox:
    """The outbox of one store. Opened for each use; nothing is held between two calls."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def beside(cls, location: str) -> Outbox:
        """Return the outbox of the store at a location."""
        store = Path(location)
        return cls(store.with_name(f"{store.name}.notify"))

    def note(self, found: Iterable[Due], now: datetime) -> None:
        """Note what is to be sent; what is known already stays as it is. Crash: none of it, or all of it."""
        at = format_time(now)
        rows = [(d.question.question_id, d.reason, d.channel.name, d.question.run_id, at) for d in found]
        self._for_each("note", rows)

    def claim(self, wanted: Sequence[Due], now: datetime, length: timedelta) -> list[Claim]:
        """Take those notifications that are due and nobody else's, to send them.

        Crash: claimed by nobody, which ends by itself, and the attempt counts.
        """
        by = secrets.token_hex(8)
        facts = {"by": by, "now": format_time(now), "until": format_time(now + length)}
        with self._written() as connection:
            rows = [connection.execute(SQL["claim"], {**_key(due), **facts}).fetchone() for due in wanted]
        return [Claim(due, by, int(row[0])) for due, row in zip(wanted, rows, strict=True) if row is not None]

    def sent(self, claims: Sequence[Claim], now: datetime) -> None:
        """Record that they were sent. Crash: sent and not recorded: sent once more when the claim has run out."""
        settled = [{**_settled(claim, State.SENT, now), "sent_at": format_time(now)} for claim in claims]
        self._for_each("settle", settled)

    def failed(self, claims: Sequence[Claim], error: str, now: datetime, attempts_max: int) -> None:
        """Record a failed attempt: it is tried again after a wait, so often at most. Crash: as a claim that ran out."""
        settled = []
        for claim in claims:
            state = State.FAILED if claim.attempt >= attempts_max else State.WAITING
            settled.append({**_settled(claim, state, now + backoff(claim.attempt)), "error": error[:ERROR_LENGTH_MAX]})
        self._for_each("settle", settled)

    def drop(self, question_ids: Sequence[str]) -> None:
        """Let go of what is left to be said about questions that are answered. Crash: none of them, or all."""
        self._for_each("drop", [(question_id,) for question_id in question_ids])

    def forget(self, question_ids: Sequence[str], kept: int) -> None:
        """Delete the rows of questions that are closed, all but the newest so many of the outbox. Crash: as `drop`."""
        self._for_each("forget", [(question_id, kept) for question_id in question_ids])

    def again(self, now: datetime) -> int:
        """Try what was given up once more; return how many. Crash: as before, or all of them."""
        with self._written() as connection:
            return connection.execute(SQL["again"], (format_time(now),)).rowcount

    def all(self) -> list[Notification]:
        """Return every notification, oldest first."""
        if not self.path.exists():
            return []
        with translated(str(self.path), "read the outbox"), closing(self._connected()) as connection:
            rows = connection.execute(SQL["all"]).fetchall()
        return [replace(Notification(*row), state=State(row[4])) for row in rows]

    def _for_each(self, name: str, facts: Sequence[tuple[str | int, ...] | dict[str, str | None]]) -> None:
        """Carry out a statement with each of these facts, if there are any. Crash: for none of them, or for all."""
        if facts:
            with self._written() as connection:
                connection.executemany(SQL[name], facts)

    @contextmanager
    def _written(self) -> Iterator[sqlite3.Connection]:
        """Begin a transaction, committed at the end. Crash: all of it or nothing. Raises: StoreUnavailable."""
        with translated(str(self.path), "write the outbox"), closing(self._connected()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection  # an exception closes the connection, and what was not committed is undone
            connection.execute("COMMIT")

    def _connected(self) -> sqlite3.Connection:
        with suppress(FileExistsError):
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(self.path, isolation_level=None, timeout=BUSY_S)
        connection.execute(SQL["schema"])
        return connection


def _key(due: Due) -> dict[str, str]:
    return {"question_id": due.question.question_id, "reason": due.reason.value, "channel": due.channel.name}


def _settled(claim: Claim, state: State, next_at: datetime) -> dict[str, str | None]:
    facts = {"by": claim.by, "state": state.value, "next_at": format_time(next_at), "sent_at": None, "error": ""}
    return {**_key(claim.due), **facts}
