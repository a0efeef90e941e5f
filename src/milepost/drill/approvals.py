"""The people of a drill's world: whoever is asked for an approval there approves, as the undisturbed run shows.

They answer in the process that asked, once its run has ended, so that the points before and after an answer are those
of one process. Counted as asked. Called by `child`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from milepost.api import default_store
from milepost.errors import ApprovalNeeded
from milepost.records.identity import Identity
from milepost.records.model import QuestionKind
from milepost.records.times import format_time
from milepost.runtime import children
from milepost.runtime.answering import answer_question, asked
from milepost.runtime.clock import Clock
from milepost.runtime.standing import unanswered
from milepost.stores.contract import QuestionRow, Store


def approved(run: Callable[[], Any], run_id: str, environ: Mapping[str, str], clock: Clock, noted: list[str]) -> Any:
    """Run a task to its end, approving what it asks to be approved; note each approval.

    Raises: whatever else the run ends in, also when it asks anything besides. Crash: each answer given or not.
    """
    children.plays_both = True
    while True:
        try:
            return run()
        except ApprovalNeeded:
            store = default_store(create=False, environ=environ)
            rows = unanswered(store, run_id)
            if not rows or any(row.kind != QuestionKind.APPROVAL for row in rows):
                raise
            for row in rows:
                _approve(store, row, environ, clock)
                noted.append(row.kind)


def _approve(store: Store, row: QuestionRow, environ: Mapping[str, str], clock: Clock) -> None:
    """Let as many people approve as must. Crash: some have, and the next process asks the rest."""
    about, key = asked(row).about, environ.get("MILEPOST_SEAL_KEY")
    there = {answer.by for answer in store.answers(row.run_id, row.question_id)}
    for number in range(1, int(about["approvals"]) + 1):
        who = Identity(f"approver-{number}@drill", tuple(about["approvers"]), door="library")
        if who.name not in there:
            answer_question(
                store,
                row.question_id,
                "approve",
                by=who,
                seal_key=key.encode("utf-8") if key else None,
                at=format_time(clock.now()),
            )
