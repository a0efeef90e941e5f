"""Every exception of Milepost, grouped by what its reader should do next.

MilepostError             one `except` catches everything of ours                       exit
├─ MisuseError            fix the calling code                                             2
├─ RefusedError           nothing was done; the message says what to do instead            3
├─ QuestionError          a person decides: `milepost inbox`, then `milepost answer`       4
├─ RunWaiting             come back later: the run waits for a recorded time               5
├─ UnavailableError       something outside is away; nothing was lost                      6
├─ StepFailed, Declined   recorded, the same on each resume; a plan may catch them         1
└─ RunInterrupted         an orderly stop by a signal                                  128+n
Signal (BaseException)    unwinds a run from inside; never leaves `run()`
"""

from __future__ import annotations

from typing import Any, ClassVar


class MilepostError(Exception):
    """Base of every error Milepost raises on purpose.

    Facts come in by keyword and stay as attributes; the class builds the message.
    `code` is stable across releases; `hint` is the next action in one sentence, which a fact `hint` replaces where
    the raiser knows a better one.
    """

    code: ClassVar[str] = "milepost"
    sentence: ClassVar[str] = "{reason}"
    hint: ClassVar[str] = "Read the message."
    exit_status: ClassVar[int] = 2

    def __init__(self, **facts: object) -> None:
        self.facts = facts
        if "hint" in facts:
            self.hint = str(facts["hint"])  # type: ignore[misc]
        super().__init__(self.sentence.format(**facts))

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["facts"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.facts))


def _rebuild(cls: type[MilepostError], facts: dict[str, object]) -> MilepostError:
    return cls(**facts)


# ── fix the calling code ────────────────────────────────────────────────────────────────────────────


class MisuseError(MilepostError):
    """The calling code or command is wrong. Found in mid-run, what is recorded stands."""

    code = "misuse"
    hint = "Correct the call and start again."


class BadName(MisuseError):
    code = "bad-name"
    sentence = "{what} {name!r} cannot be used: {reason}"
    hint = "Use 1 to 200 printable characters without line breaks, not starting with '-', '.' or '~'."


class BadInput(MisuseError):
    code = "bad-input"
    sentence = "task {task}, input {name}: {reason}"
    hint = "Give each input as name=value; `milepost map TASK` lists the inputs and their types."


class BadOption(MisuseError):
    code = "bad-option"
    sentence = "{where}: {reason}"
    hint = "Correct the option where the function is declared."


class UnknownTask(MisuseError):
    code = "unknown-task"
    sentence = "no task at {target!r}: {reason}"
    hint = "Name it FILE.py:FUNCTION or MODULE:FUNCTION, where FUNCTION is decorated with @task."


class AmbiguousTask(MisuseError):
    code = "ambiguous-task"
    sentence = "two tasks are called {name!r}: {first} and {second}"
    hint = "Rename one of them, or give one another name with @task(name=…)."


class DuplicateStep(MisuseError):
    code = "duplicate-step"
    sentence = "run {run_id}: {path!r} is called a second time: {reason}"
    hint = "Give each call its own key=…, so that a resume can tell them apart."


class NotEncodable(MisuseError):
    code = "not-encodable"
    sentence = "{where}, at {path}: expected {expected}, found {found}"
    hint = "Return annotated plain data: dataclasses, pydantic models, JSON types, Decimal, dates, bytes or paths."


class NotDecodable(MisuseError):
    code = "not-decodable"
    sentence = "{where}, at {path}: the stored value does not fit the annotation: expected {expected}, found {found}"
    hint = "The type changed since the value was stored: let the annotation read the old shape, or redo the step."


class ArgumentsChanged(MisuseError):
    code = "arguments-changed"
    sentence = "step {path}: its body changed its arguments in place"
    hint = "Work on a copy and return the result, or take the parameter out with unwatched=(…)."


class SourceChangedMeanwhile(MisuseError):
    code = "source-changed-meanwhile"
    sentence = "step {path}: {source} changed while the step was reading it: was {before}, is {after}"
    hint = "If the step itself writes it, name it in writes=(…); else keep others from writing meanwhile."


class BlocksLoop(MisuseError):
    code = "blocks-loop"
    sentence = "{path!r} is a synchronous function and was called on a running event loop"
    hint = "Write `await {name}.aio(…)`: the body then runs in a thread and the loop stays free."

    def __init__(self, **facts: object) -> None:
        super().__init__(**facts)
        self.hint = type(self).hint.format(**facts)  # type: ignore[misc]


class OutsideRun(MisuseError):
    code = "outside-run"
    sentence = "{path!r} was called outside its run: {reason}"
    hint = (
        "Carry the run into your own threads with milepost.carry(…); "
        "call an effect deliberately without a run with .plain(Key(…), …)."
    )


class NotAwaited(MisuseError):
    code = "not-awaited"
    sentence = "run {run_id}: {path} was called and not awaited: it never began, and the body that called it returned"
    hint = "Await it, or give it to a task (`asyncio.create_task`, a `TaskGroup`): the body waits for that."


class CalledInside(MisuseError):
    code = "called-inside"
    sentence = "{path!r} is called inside {inside}, which holds no steps and no effects"
    hint = "Call it in the plan or in a step, and pass on what it returns."


class PermissionMissing(MisuseError):
    code = "permission-missing"
    sentence = "effect {path!r} needs the permission {permission!r}, task {task} holds {held}"
    hint = "Add it to the task's permissions=[…] if the task is meant to do this."


class RecordTooLarge(MisuseError):
    code = "record-too-large"
    sentence = "{what} of {path!r} would take {size} bytes; a record holds at most {size_max}"
    hint = "Shorten names, keys and notes; put data into the output, which is stored as an artifact."


# ── nothing was done ────────────────────────────────────────────────────────────────────────────────


class RefusedError(MilepostError):
    """Milepost refused; nothing was changed and nothing ran."""

    code = "refused"
    hint = "Read the message; nothing was changed."
    exit_status = 3


class CorruptRecord(RefusedError):
    code = "corrupt-record"
    sentence = "run {run_id}: {record} cannot be trusted: {reason}"
    hint = "`milepost verify RUN` tells more; `milepost fork RUN --from STEP` goes on from before it."


class SealKeyMissing(RefusedError):
    code = "seal-key-missing"
    sentence = (
        "run {run_id}: its records are sealed with key {key_name}, {found}; they can be neither trusted nor refused"
    )
    hint = "Set MILEPOST_SEAL_KEY to the key this run was started with."


class StoreTooNew(RefusedError):
    code = "store-too-new"
    sentence = "{location}: the store has schema {found}, this Milepost knows up to {expected}"
    hint = "Upgrade milepost; nothing was changed in the store."


class ForeignDatabase(RefusedError):
    code = "foreign-database"
    sentence = "{location}: this is not a Milepost store: {reason}"
    hint = "Name another file with MILEPOST_STORE; nothing was changed in this one."


class StoreMissing(RefusedError):
    code = "store-missing"
    sentence = "no Milepost store at {location}"
    hint = "Go to the folder the run was started in, or set MILEPOST_STORE; `milepost run` creates a store."


class RunUnknown(RefusedError):
    code = "run-unknown"
    sentence = "no run {run_id!r} in {location}"
    hint = "`milepost runs` lists the runs of this store."


class RunUnstarted(RefusedError):
    code = "run-unstarted"
    sentence = "run {run_id} in {location} died before its first record: nothing was done, not even its inputs are kept"
    hint = "Start it again with its inputs: `milepost run TASK name=value … --run-id RUN`."


class RunBusy(RefusedError):
    code = "run-busy"
    sentence = "run {run_id} is being worked on by {holder} since {since}"
    hint = "Wait for it, or stop that process. If it has died, `milepost resume RUN` takes over from it at once."


class LeaseTaken(RefusedError):
    code = "lease-taken"
    sentence = (
        "run {run_id}: this process lost its lease (token {token}) to a later holder; nothing of it was written since"
    )
    hint = "Nothing to do: the later holder carries the run on. `milepost show RUN` tells where it stands."


class WrongTask(RefusedError):
    code = "wrong-task"
    sentence = "run {run_id} belongs to task {expected}, not to {found}"
    hint = "Choose another run id, or start the task the run belongs to."


class InputsDiffer(RefusedError):
    code = "inputs-differ"
    sentence = "run {run_id} was started with other inputs: {difference}"
    hint = "Resume it with the inputs it has (`milepost resume RUN`), or choose another run id."


class RunEnded(RefusedError):
    code = "run-ended"
    sentence = "run {run_id} has ended: {status}"
    hint = "Start a new run, or go on from one of its steps with `milepost fork RUN --from STEP`."


class AlreadyAnswered(RefusedError):
    code = "already-answered"
    sentence = "question {question_id} was answered {choice!r} by {by} at {at}"
    hint = "The first answer stands; yours is kept in the audit."


class QuestionUnknown(RefusedError):
    code = "question-unknown"
    sentence = "no question {question_id!r} in {location}"
    hint = "`milepost inbox` lists the open questions."


class AnswerRefused(RefusedError):
    code = "answer-refused"
    sentence = "question {question_id}: {reason}"
    hint = "`milepost inbox QUESTION` shows the choices and what each needs."


class StepUnknown(RefusedError):
    code = "step-unknown"
    sentence = "run {run_id} has no step {path!r}"
    hint = "`milepost show RUN` lists its steps."


# ── a person decides (raised by run() only) ─────────────────────────────────────────────────────────


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


class StoreWentBack(QuestionError):
    code = "store-went-back"


# ── later, unavailable, failed, interrupted ─────────────────────────────────────────────────────────


class RunWaiting(MilepostError):
    """The run waits for a recorded time and was told not to wait in the foreground."""

    code = "run-waiting"
    sentence = "run {run_id} waits until {until}: {reason}"
    hint = "`milepost resume RUN` after that time."
    exit_status = 5


class UnavailableError(MilepostError):
    """Something outside is away; what is recorded stands, try again."""

    code = "unavailable"
    hint = "Try again when it is back: `milepost resume RUN`."
    exit_status = 6


class StoreUnavailable(UnavailableError):
    code = "store-unavailable"
    sentence = "{location}: {operation} failed: {reason}"
    hint = "Free space, descriptors or permissions, then `milepost doctor` and `milepost resume RUN`."


class SourceUnavailable(UnavailableError):
    code = "source-unavailable"
    sentence = "{source} cannot be read: {reason}"
    hint = "Make the source readable again, then `milepost resume RUN`."


class StepFailed(MilepostError):
    """A step or effect failed and its policy says so. Recorded, the same on each resume.

    Facts: run_id, path, attempt, error (the recorded text). The user's own exception is `__cause__`.
    """

    code = "step-failed"
    sentence = "run {run_id}: {path} failed at attempt {attempt}: {error}"
    hint = "Mend the cause and `milepost resume RUN`: finished steps are not repeated."
    exit_status = 1


class Declined(MilepostError):
    """A person declined. Recorded, the same on each resume."""

    code = "declined"
    sentence = "run {run_id}: {path} was declined by {by}: {note}"
    hint = "The plan may catch Declined and go on without it."
    exit_status = 1


class RunInterrupted(MilepostError):
    """A signal stopped the run in order; every finished step is recorded."""

    code = "run-interrupted"
    sentence = "run {run_id} was stopped by signal {signal_number}"
    hint = "`milepost resume RUN` goes on where it stood."

    @property
    def exit_status(self) -> int:  # type: ignore[override]
        return 128 + int(self.facts["signal_number"])  # type: ignore[call-overload,no-any-return]


# ── unwinding inside a run ──────────────────────────────────────────────────────────────────────────


class Signal(BaseException):
    """Unwinds a run from inside, past every `except Exception` of the user's code."""


class RunPaused(Signal):
    """A question or a wait is open and no body runs any more."""


class RunStopping(Signal):
    """An orderly stop was asked for, or the store failed: no further body starts."""


class LeaseLost(Signal):
    """A later holder has the run: nothing of this process counts any more."""
