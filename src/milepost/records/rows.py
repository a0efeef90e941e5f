"""Rows beside the journal: what people and runs leave for each other. The holder enters in the journal what it acts on.

Answers and requests to cancel are written without a lease; a claim outlives the run that made it. `seal` is an
HMAC over every other field, by the key of the run that the row is about (None without one; see `seal`).
Data only, like the records. Called by the stores (which keep them), the protocol and the runtime.
"""

from __future__ import annotations

from milepost.records.frozen import frozen


@frozen
class AnswerRow:
    """What a person decided. `place` counts the answers to one question that were accepted, from 1.

    0 is a later answer, kept for the audit only. `role` is the entry of `approvers=` that let them answer.
    """

    question_id: str
    run_id: str
    choice: str
    by: str
    at: str
    note: str = ""
    ref: str | None = None
    result: bytes | None = None  # JSON
    place: int = 1
    seal: bytes | None = None
    request: bytes | None = None  # JSON: of an edited request the arguments, and the files among them
    door: str = ""
    role: str = ""

    @property
    def accepted(self) -> bool:
        return self.place > 0


@frozen
class CancelRow:
    """Who asked a run to end, when and why."""

    run_id: str
    by: str
    at: str
    note: str = ""
    seal: bytes | None = None


@frozen
class ClaimRow:
    """Who owns an idempotency key of `scope="task"`, and how its effect ended (None while open).

    The place of the newest run in a family is owned in the same way (`family`); nothing of it ends.
    """

    key: str
    run_id: str
    path: str
    request_digest: str
    at: str  # when the row was written: claimed, or ended
    outcome: str | None = None
    ref: str | None = None
    result: bytes | None = None
    media_type: str | None = None
    seal: bytes | None = None
