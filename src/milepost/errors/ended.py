"""How a run comes back without its result: it waits, something is away, a step failed, it was interrupted."""

from __future__ import annotations

from milepost.errors.tree import MilepostError


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
