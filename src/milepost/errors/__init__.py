"""Every exception of Milepost, grouped by what its reader should do next.

MilepostError             one `except` catches everything of ours                       exit
├─ MisuseError            fix the calling code                                             2
├─ RefusedError           nothing was done; the message says what to do instead            3
├─ QuestionError          a person decides: `milepost inbox`, then `milepost answer`       4
├─ RunWaiting             come back later: the run waits for a recorded time               5
├─ UnavailableError       something outside is away; nothing was lost                      6
├─ UnprovenError          what is here proves neither; bring the seal key                  7
├─ StepFailed, Declined   recorded, the same on each resume; a plan may catch them         1
└─ RunInterrupted         an orderly stop by a signal                                  128+n
Signal (BaseException)    unwinds a run from inside; never leaves `run()`
"""

from __future__ import annotations

from milepost.errors.asked import (
    ApprovalNeeded,
    AttemptsUsed,
    LimitReached,
    OutcomeUnknown,
    PlanChanged,
    QuestionError,
    RequestChanged,
    ShadowResultNeeded,
    SourceChanged,
    StoreWentBack,
    VersionsChanged,
)
from milepost.errors.audited import (
    AuditAltered,
    AuditIncomplete,
    AuditUnproven,
    UnprovenError,
)
from milepost.errors.ended import (
    Declined,
    RunInterrupted,
    RunWaiting,
    SourceUnavailable,
    StepFailed,
    StoreUnavailable,
    UnavailableError,
)
from milepost.errors.misuse import (
    AmbiguousTask,
    ArgumentsChanged,
    BadConfig,
    BadInput,
    BadName,
    BadOption,
    BlocksLoop,
    CalledInside,
    DuplicateStep,
    ExtraMissing,
    LoopStopped,
    MisuseError,
    NotAwaited,
    NotDecodable,
    NotEncodable,
    OutsideRun,
    PermissionMissing,
    RecordTooLarge,
    SourceChangedMeanwhile,
    UndeclaredWrite,
    UnknownTask,
)
from milepost.errors.refused import (
    AlreadyAnswered,
    AlreadyForked,
    AnswerRefused,
    ArtifactUnknown,
    ConsoleRefused,
    CorruptRecord,
    ForeignDatabase,
    InputsDiffer,
    LeaseTaken,
    NotPromoted,
    QuestionUnknown,
    RefusedError,
    RunBusy,
    RunEnded,
    RunUnknown,
    RunUnstarted,
    SealKeyMissing,
    ShadowDiffers,
    StepUnknown,
    StoreLinked,
    StoreMissing,
    StoreNotYours,
    StoreTooNew,
    WatchRunning,
    WrongTask,
)
from milepost.errors.signals import (
    LeaseLost,
    RunPaused,
    RunStopping,
    Signal,
)
from milepost.errors.tree import (
    MilepostError,
)

__all__ = [
    "AlreadyAnswered",
    "AlreadyForked",
    "AmbiguousTask",
    "AnswerRefused",
    "ApprovalNeeded",
    "ArgumentsChanged",
    "ArtifactUnknown",
    "AttemptsUsed",
    "AuditAltered",
    "AuditIncomplete",
    "AuditUnproven",
    "BadConfig",
    "BadInput",
    "BadName",
    "BadOption",
    "BlocksLoop",
    "CalledInside",
    "ConsoleRefused",
    "CorruptRecord",
    "Declined",
    "DuplicateStep",
    "ExtraMissing",
    "ForeignDatabase",
    "InputsDiffer",
    "LeaseLost",
    "LeaseTaken",
    "LimitReached",
    "LoopStopped",
    "MilepostError",
    "MisuseError",
    "NotAwaited",
    "NotDecodable",
    "NotEncodable",
    "NotPromoted",
    "OutcomeUnknown",
    "OutsideRun",
    "PermissionMissing",
    "PlanChanged",
    "QuestionError",
    "QuestionUnknown",
    "RecordTooLarge",
    "RefusedError",
    "RequestChanged",
    "RunBusy",
    "RunEnded",
    "RunInterrupted",
    "RunPaused",
    "RunStopping",
    "RunUnknown",
    "RunUnstarted",
    "RunWaiting",
    "SealKeyMissing",
    "ShadowDiffers",
    "ShadowResultNeeded",
    "Signal",
    "SourceChanged",
    "SourceChangedMeanwhile",
    "SourceUnavailable",
    "StepFailed",
    "StepUnknown",
    "StoreLinked",
    "StoreMissing",
    "StoreNotYours",
    "StoreTooNew",
    "StoreUnavailable",
    "StoreWentBack",
    "UnavailableError",
    "UndeclaredWrite",
    "UnknownTask",
    "UnprovenError",
    "VersionsChanged",
    "WatchRunning",
    "WrongTask",
]

for _name in __all__:
    globals()[_name].__module__ = __name__  # which file has a class is our affair: records and logs name the room
