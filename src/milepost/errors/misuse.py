"""Fix the calling code or the command: exit status 2."""

from __future__ import annotations

from milepost.errors.tree import MilepostError


class MisuseError(MilepostError):
    """The calling code or command is wrong. Found in mid-run, what is recorded stands."""

    code = "misuse"
    hint = "Correct the call and start again."


class BadName(MisuseError):
    code = "bad-name"
    sentence = "{what} {name!r} cannot be used: {reason}"
    hint = (
        "Use 1 to 200 printable characters without line breaks or a blank at an end, not starting with '-', '.' or '~'."
    )


class BadInput(MisuseError):
    code = "bad-input"
    sentence = "task {task}, input {name}: {reason}"
    hint = "Give each input as name=value; `milepost map TASK` lists the inputs and their types."


class BadOption(MisuseError):
    code = "bad-option"
    sentence = "{where}: {reason}"
    hint = "Correct the option where the function is declared."


class BadConfig(MisuseError):
    code = "bad-config"
    sentence = "{file}, {key}: expected {expected}, found {found}"
    hint = "Correct the file; docs/watching.md lists every table and key."


class ExtraMissing(MisuseError):
    code = "extra-missing"
    sentence = "{what} need what is not installed"
    hint = "Install it: `pip install 'milepost[{extra}]'`."


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
    of_map = "Write `await asyncio.to_thread({name}.map, …)`: the items then run in threads and the loop stays free."


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


class LoopStopped(MisuseError):
    code = "loop-stopped"
    sentence = "run {run_id}: the plan, or something it called, stopped the event loop before the plan had ended"
    hint = (
        "Do not call loop.stop() inside a run: raise, or return. What was recorded stands: `milepost resume {run_id}`"
    )


class CalledInside(MisuseError):
    code = "called-inside"
    sentence = "{path!r} is called inside {inside}, which holds no steps and no effects"
    hint = "Call it in the plan or in a step, and pass on what it returns."


class PermissionMissing(MisuseError):
    code = "permission-missing"
    sentence = "effect {path!r} needs the permission {permission!r}, task {task} holds {held}"
    hint = "Add it to the task's permissions=[…] if the task is meant to do this."


class UndeclaredWrite(MisuseError):
    """Of a shadow run: code that is no effect tried to change something outside. It was kept from it."""

    code = "undeclared-write"
    sentence = "shadow run {run_id}, {who}: {what} is refused at {line}: it is neither an effect nor declared as read"
    hint = "Move the write into an @effect; if it only reads, name it in reads=[…] of the step or the task."


class RecordTooLarge(MisuseError):
    code = "record-too-large"
    sentence = "{what} of {path!r} would take {size} bytes; a record holds at most {size_max}"
    hint = "Shorten names, keys and notes; put data into the output, which is stored as an artifact."
