"""What people and runs leave for each other without a lease: answers, requests to cancel, claimed keys.

A claim is the exception that needs the token, like every write of a run. Called by SqliteStore.
"""

from __future__ import annotations

import sqlite3

from milepost.errors import LeaseLost, QuestionUnknown
from milepost.records.rows import AnswerRow, CancelRow, ClaimRow
from milepost.stores.sqlite.connection import Writer
from milepost.stores.sqlite.queries import SQL


def answer(writer: Writer, given: AnswerRow) -> AnswerRow:
    """Record an answer; return it, or the one that stands in its place. Crash: as if not given, or given.

    Raises: QuestionUnknown when the run has no such question.
    """

    def add(connection: sqlite3.Connection) -> AnswerRow:
        if not connection.execute(SQL["question_known"], (given.question_id, given.run_id)).fetchone():
            raise QuestionUnknown(question_id=given.question_id, location=writer.location)
        found = connection.execute(SQL["answer_in_place"], (given.question_id, given.place)).fetchone()
        if found is None:
            connection.execute(SQL["add_answer"], _answer_values(given))
        return given if found is None else AnswerRow(*found)

    return writer.transaction("answer", add)


def cancel(writer: Writer, asked: CancelRow) -> None:
    """Ask a run to end; the first request stands. Crash: asked or not asked."""
    values = (asked.by, asked.at, asked.note, asked.seal, asked.run_id)
    writer.transaction("cancel", lambda connection: connection.execute(SQL["ask_to_cancel"], values))


def claim(writer: Writer, wanted: ClaimRow, token: int, instead_of: str | None) -> ClaimRow:
    """Own a key, or return its owner's row. Crash: claimed or not. Raises: LeaseLost."""

    def add(connection: sqlite3.Connection) -> ClaimRow:
        newest = connection.execute(SQL["token"], (wanted.run_id,)).fetchone()
        if newest is None or newest[0] != token:
            raise LeaseLost
        key, *others = _claim_values(wanted)
        connection.execute(SQL["add_claim"], (key, *others))
        if instead_of is not None:
            connection.execute(SQL["take_claim_over"], (*others, key, instead_of))
        return ClaimRow(*connection.execute(SQL["claim"], (key,)).fetchone())

    return writer.transaction("claim", add)


def _answer_values(given: AnswerRow) -> tuple[object, ...]:
    words = (given.question_id, given.choice, given.by, given.at, given.note)
    return (*words, given.ref, given.result, given.place, given.seal, given.request, given.door, given.role)


def _claim_values(wanted: ClaimRow) -> tuple[object, ...]:
    about = (wanted.key, wanted.run_id, wanted.path, wanted.request_digest, wanted.at)
    return (*about, wanted.outcome, wanted.ref, wanted.result, wanted.media_type, wanted.seal)
