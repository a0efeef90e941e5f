"""A person decides: raised at the door of `run()` only, exit status 4."""

from __future__ import annotations

from milepost.errors.tree import MilepostError


class QuestionError(MilepostError):
    """The run stopped with open questions. Raised at the door of `run()` only.

    Facts: run_id, question_id, path, question (one sentence), count (open questions of the run).
    """

    code = "question"
    sentence = "run {run_id} asks ({question_id}): {question}"
    hint = "`milepost inbox` shows the question; answer it, then `milepost resume`."
    exit_status = 4


class SourceChanged(QuestionError):
    code = "source-changed"


class RequestChanged(QuestionError):
    code = "request-changed"


class PlanChanged(QuestionError):
    code = "plan-changed"


class VersionsChanged(QuestionError):
    code = "versions-changed"


class OutcomeUnknown(QuestionError):
    code = "outcome-unknown"


class AttemptsUsed(QuestionError):
    code = "attempts-used"


class LimitReached(QuestionError):
    code = "limit-reached"


class ApprovalNeeded(QuestionError):
    code = "approval"


class StoreWentBack(QuestionError):
    code = "store-went-back"


class ShadowResultNeeded(QuestionError):
    code = "shadow-result-needed"
