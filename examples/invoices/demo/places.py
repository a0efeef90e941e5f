"""The five places where the month is killed, found by counting in the journal of the undisturbed run.

Pure. A place is a crash point of Milepost (`LABEL PHASE N` of MILEPOST_CRASH_AT), counted anew in each process. The
order is fixed: each process starts where the one before died, so its counts follow from what was left to do.
"""

from __future__ import annotations

from dataclasses import dataclass

from invoices.demo.journal import Journal, tokens_of

DIED_UNRECORDED_MAX = 1
"""Model calls of the killed month that nothing could be kept of: the first place is one."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where one process dies: the crash point, and what that means in plain words."""

    crash_at: str
    words: str


def places_of(undisturbed: Journal) -> list[Place]:
    """Choose the places: two in the extraction and matching, one around a checkpoint, two around a call outside."""
    extracted = undisturbed.extracted()
    dying = _one_that_asked_the_model([tokens_of(checkpoint) for checkpoint in extracted])
    left = len(extracted) - dying + 1
    posts, mails = len(undisturbed.effects("post")), len(undisturbed.effects("notify"))
    posting = (posts + 1) // 2
    mailing = posts - posting + (mails + 1) // 2
    return [
        Place(f"body durable {dying}", f"inside extract, file {dying}: the model has answered, nothing is kept"),
        # The task's own body is the first of its process.
        Place(f"body before {1 + left + 1}", "between the start of match and its body"),
        Place("append:step_verified done 1", "match is done, its checkpoint written but not yet durable"),
        Place(f"send durable {posting}", f"the queue accepted discrepancy {posting}, our record of it is not written"),
        Place(f"send before {mailing}", f"mail {(mails + 1) // 2} is announced in the journal, but has not left"),
    ]


def _one_that_asked_the_model(tokens: list[int]) -> int:
    """Give the number (from 1) of a file in the middle that a model read, else of the middle one."""
    numbers = [number for number, count in enumerate(tokens, start=1) if count]
    return numbers[len(numbers) // 2] if numbers else (len(tokens) + 1) // 2
