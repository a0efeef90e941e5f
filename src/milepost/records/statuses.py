"""The words a journal uses for where things stand, and for what a person may be asked. Imported through `model`."""

from __future__ import annotations

from enum import StrEnum


class Checkpoint(StrEnum):
    """Where a step stands."""

    IN_PROGRESS = "in_progress"
    VERIFIED = "verified"
    FAILED = "failed"


class Outcome(StrEnum):
    """What is known of one send of an effect. Only `applied` is final."""

    APPLIED = "applied"
    REJECTED = "rejected"
    UNKNOWN = "unknown"


class RunStatus(StrEnum):
    """Where a run stands. `running` without a living holder means its process died."""

    RUNNING = "running"
    WAITING = "waiting"  # for a recorded time
    ASKING = "asking"  # for a person
    INTERRUPTED = "interrupted"  # an orderly stop
    FAILED = "failed"  # an exception of the user's; resume starts the step again
    STOPPED = "stopped"  # ended by a person's answer or by a fork
    CANCELLED = "cancelled"
    DONE = "done"


ENDED = frozenset({RunStatus.STOPPED, RunStatus.CANCELLED, RunStatus.DONE})
"""Statuses from which no resume goes on."""


class QuestionKind(StrEnum):
    """What a person may be asked (design §6)."""

    SOURCE_CHANGED = "source_changed"
    REQUEST_CHANGED = "request_changed"
    PLAN_CHANGED = "plan_changed"
    VERSIONS_CHANGED = "versions_changed"
    OUTCOME_UNKNOWN = "outcome_unknown"
    ATTEMPTS_USED = "attempts_used"
    STORE_WENT_BACK = "store_went_back"
    APPROVAL = "approval"
    LIMIT_REACHED = "limit_reached"
    SHADOW_RESULT_NEEDED = "shadow_result_needed"
