"""What limits need of the runtime: how they are recorded, and what was used inside steps a resume does not read."""

from __future__ import annotations

from typing import Any

from milepost.protocol.spec import TaskSpec
from milepost.protocol.used import Used
from milepost.records.model import AnswerEntered
from milepost.runtime.active import ActiveRun
from milepost.runtime.opening import decoded


def declared_limits(task: TaskSpec) -> dict[str, Any]:
    """Return a task's limits as a record holds them."""
    return {} if task.limits is None else task.limits.to_json()


def count_unread(run: ActiveRun) -> None:
    """Count what a run used from its whole journal, where some of it lies inside verified steps.

    Raises: CorruptRecord when what was spent there cannot be trusted.
    """
    journal, snapshot = run.journal, run.snapshot
    if not any(run.is_unread(place.chain) for place in journal.store.outline(run.run_id).places):
        return
    counted = Used()
    for line in journal.sealer.checked(journal.store.records(run.run_id), {}):
        record = decoded(journal.sealer, line)
        counted.hear(record)
        if isinstance(record, AnswerEntered) and record.choice == "again":
            question, _ = snapshot.answered[record.question_id]
            counted.allow_again(str(question.about.get("limit", "")), record.at)
    read = snapshot.used  # the newest errors stand in chains that were read
    counted.error, counted.error_count = read.error, read.error_count
    snapshot.used = counted
