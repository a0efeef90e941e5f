"""What a caller of `run()` is told: how a journey ended, as a result or one of our ordinary errors.

Inside a run signals unwind; no signal, no group and no error of the plan's own passes this door untranslated.
Writes nothing. Called by `start`.
"""

from __future__ import annotations

from milepost.errors import (
    ApprovalNeeded,
    AttemptsUsed,
    LeaseLost,
    LeaseTaken,
    LimitReached,
    MilepostError,
    OutcomeUnknown,
    OutsideRun,
    PlanChanged,
    QuestionError,
    RequestChanged,
    RunEnded,
    RunInterrupted,
    RunPaused,
    RunStopping,
    RunWaiting,
    ShadowResultNeeded,
    SourceChanged,
    StoreWentBack,
    VersionsChanged,
)
from milepost.records.model import QuestionKind
from milepost.runtime.active import ActiveRun
from milepost.runtime.journey import HasEnded, StillAsks, plans_own

_QUESTIONS: dict[str, type[QuestionError]] = {
    QuestionKind.SOURCE_CHANGED: SourceChanged,
    QuestionKind.REQUEST_CHANGED: RequestChanged,
    QuestionKind.PLAN_CHANGED: PlanChanged,
    QuestionKind.VERSIONS_CHANGED: VersionsChanged,
    QuestionKind.OUTCOME_UNKNOWN: OutcomeUnknown,
    QuestionKind.ATTEMPTS_USED: AttemptsUsed,
    QuestionKind.STORE_WENT_BACK: StoreWentBack,
    QuestionKind.APPROVAL: ApprovalNeeded,
    QuestionKind.LIMIT_REACHED: LimitReached,
    QuestionKind.SHADOW_RESULT_NEEDED: ShadowResultNeeded,
}


def told(run: ActiveRun, error: BaseException) -> BaseException:
    """Translate how a journey ended into what the caller sees: our ordinary errors, no group, no signal."""
    if not run.is_of_this_process and isinstance(error, SystemExit):
        return error  # how a forked child ends is its own affair
    if not run.is_of_this_process:
        return OutsideRun(path=run.run_id, reason="this process was forked from the one that holds the run")
    if isinstance(error, KeyboardInterrupt):
        return error  # whatever it broke: the next resume reads what there is
    if isinstance(error, LeaseLost) or isinstance(run.broken, LeaseLost):
        return LeaseTaken(run_id=run.run_id, token=run.lease.token)
    if isinstance(run.broken, MilepostError):
        return run.broken
    if isinstance(error, (RunPaused, StillAsks)):
        return _asking(run) if run.snapshot.questions else _waiting(run)
    if isinstance(error, RunStopping):
        return RunInterrupted(run_id=run.run_id, signal_number=run.stop_signal or 15)
    if isinstance(error, HasEnded):
        return RunEnded(run_id=run.run_id, status=error.status)
    if isinstance(error, BaseExceptionGroup):
        return told(run, plans_own(run, first_of(error)))
    return plans_own(run, error) if isinstance(error, Exception) else error


def first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return what a group is about: one of our errors if there is one, else its first exception."""
    leaves: list[BaseException] = []

    def collect(error: BaseException) -> None:
        if isinstance(error, BaseExceptionGroup):
            for inner in error.exceptions:
                collect(inner)
        else:
            leaves.append(error)

    collect(group)
    return next((leaf for leaf in leaves if isinstance(leaf, MilepostError)), leaves[0])


def _asking(run: ActiveRun) -> QuestionError:
    """Tell of the first question; one that this journey asked goes before what is perhaps answered already."""
    asked = run.snapshot.questions.values()
    asked_here = [question for question in asked if question.question_id not in run.asked_before] or list(asked)
    question = asked_here[0]
    return _QUESTIONS[question.question_kind](
        run_id=run.run_id,
        question_id=question.question_id,
        path=question.path,
        question=question.sentence,
        count=len(asked_here),
    )


def _waiting(run: ActiveRun) -> RunWaiting:
    until, reason = run.waiting or ("later", "")
    return RunWaiting(run_id=run.run_id, until=until, reason=reason)
