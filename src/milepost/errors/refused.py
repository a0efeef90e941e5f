"""Nothing was done; the message says what to do instead: exit status 3."""

from __future__ import annotations

from milepost.errors.tree import MilepostError


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


class StoreNotYours(RefusedError):
    code = "store-not-yours"
    sentence = "{location}: {what} belongs to {owner}, neither to you nor to root; what it names would run as you"
    hint = "If you trust its owner, say so: set MILEPOST_STORE to this file. Else set it to a file of your own."


class StoreLinked(RefusedError):
    code = "store-linked"
    sentence = (
        "{location}: {what} has {count} names (hard links); SQLite keeps a -wal for each name, and whoever opens it "
        "under one may undo what was written under another"
    )
    hint = (
        "Nothing was opened. `find / -xdev -samefile FILE` lists the other names; remove them: they are no backup, for "
        "they change with it. To copy a store use `cp -a` while nothing has it open, or sqlite3's .backup."
    )


class RunUnknown(RefusedError):
    code = "run-unknown"
    sentence = "no run {run_id!r} in {location}"
    hint = "`milepost runs` lists the runs of this store."


class RunUnstarted(RefusedError):
    code = "run-unstarted"
    sentence = "run {run_id} in {location} died before its first record: nothing was done, not even its inputs are kept"
    hint = (
        "Start it again with its inputs: `milepost run TASK name=value … --run-id RUN`; "
        "where it was to be a fork, fork the same run again."
    )


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


class WatchRunning(RefusedError):
    code = "watch-running"
    sentence = "{location} is watched already, by {holder} since {since}"
    hint = "One watch for each store is enough; stop that one first to start another."


class WrongTask(RefusedError):
    code = "wrong-task"
    sentence = "run {run_id} belongs to task {expected}, not to {found}"
    hint = (
        "Choose another run id, or start the task the run belongs to. A task that was renamed keeps its runs when it "
        "is declared with the name they have: @task(name=…)."
    )


class InputsDiffer(RefusedError):
    code = "inputs-differ"
    sentence = "run {run_id} was started with other inputs: {difference}"
    hint = "Resume it with the inputs it has (`milepost resume RUN`), or choose another run id."


class ShadowDiffers(RefusedError):
    code = "shadow-differs"
    sentence = "run {run_id} is {found}, it cannot go on as {wanted}"
    hint = "Choose another run id: a run is shadow or live from its first record to its last."


class NotPromoted(RefusedError):
    code = "not-promoted"
    sentence = "task {task} may not run live yet: {missing}"
    hint = (
        "Start it with --shadow, compare with `milepost shadow report RUN --against … --keep`, "
        "then `milepost promote FILE.py:TASK`."
    )


class RunEnded(RefusedError):
    code = "run-ended"
    sentence = "run {run_id} has ended: {status}"
    hint = (
        "Start a new run, or go on from one of its steps with `milepost fork RUN --from STEP`; "
        "if it was forked before, from the newest of its family."
    )


class AlreadyForked(RefusedError):
    code = "already-forked"
    sentence = "run {run_id} was forked before: the newest run of its family is {newest}"
    hint = "Fork the newest of the family instead: it knows all that was sent."


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


class ConsoleRefused(RefusedError):
    code = "console-refused"
    sentence = "the console does not listen on {where}: {reason}"
    hint = (
        "Listen on 127.0.0.1, or set tokens_file, or identity_header with proxy_secret_env, in [console] of "
        "milepost.toml; docs/console.md shows each. If the port is taken, choose another with --port."
    )


class ArtifactUnknown(RefusedError):
    code = "artifact-unknown"
    sentence = "run {run_id}: none of its records points at an artifact {digest!r}"
    hint = "`milepost show RUN --step PATH` names the artifacts of a step."


class StepUnknown(RefusedError):
    code = "step-unknown"
    sentence = "run {run_id} has no step {path!r}"
    hint = "`milepost show RUN --all` lists its steps and effects, each item of a `.map` by its whole path."
