"""How a command that did not succeed says so: code, message, hint; its exit status. No traceback of ours, ever.

The user's own exception is shown with its traceback, our frames taken out. Called by `main` and `carry_out`.
"""

from __future__ import annotations

import errno
import textwrap
import traceback
from pathlib import Path
from typing import Any

import click

import milepost
from milepost.cli.output import emit, note
from milepost.errors import MilepostError, StepFailed, UnavailableError, UnknownTask
from milepost.records.secret import redact
from milepost.views.errors import error_object, hint_of

OWN = (str(Path(milepost.__file__).parent), "<frozen importlib")
TRACEBACK_MAX = 20_000
"""Characters of a traceback that are shown; the middle of a longer one is left out."""


def tell(error: MilepostError, *, as_json: bool, **beside: Any) -> int:
    """Tell a foreseen error and return its exit status. `beside` goes into the JSON object next to it."""
    cause = error.__cause__
    if isinstance(error, (StepFailed, UnknownTask)) and cause is not None and not isinstance(cause, MilepostError):
        note(textwrap.indent(users_traceback(cause), "  | ", lambda line: True), lines=True)  # no line passes for ours
    if as_json:
        emit({**beside, "error": error_object(error)})
    else:
        note(f"{error.code}: {redact(str(error))}")
        note(f"  → {hint_of(error)}")
    return error.exit_status


def lacks_descriptors(error: BaseException | None) -> bool:
    """Say whether an error, or one that it came from, is that no more files can be opened."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            return True
        error = error.__cause__ or error.__context__
    return False


def no_descriptors() -> UnavailableError:
    """Return the error of a process that may open no more files: even an import needs one."""
    return UnavailableError(
        reason="no file descriptor is free: this process may open no more files",
        hint="Allow more (`ulimit -n 256`) or close some, and type it again; what is recorded stands.",
    )


def tell_usage(error: click.ClickException, *, as_json: bool) -> int:
    """Tell a command line that click could not read. Always exit status 2."""
    context = getattr(error, "ctx", None)
    hint = f"`{context.command_path} --help` shows how." if context is not None else "`milepost --help` shows how."
    asks_help = isinstance(error, click.exceptions.NoArgsIsHelpError)
    message = "expected a command" if asks_help else " ".join(error.format_message().split())
    if as_json:
        emit({"error": {"code": "usage", "message": message, "hint": hint, "exit_status": 2, "facts": {}}})
    elif asks_help:
        note(error.format_message(), lines=True)
    else:
        note(f"usage: {message}")
        note(f"  → {hint}")
    return 2


def users_traceback(error: BaseException) -> str:
    """Return an exception's traceback as text, without the frames of Milepost and of the import machinery."""
    told = traceback.TracebackException.from_exception(error)
    _take_out_own_frames(told)
    text = redact("".join(told.format())).rstrip("\n")
    if len(text) > TRACEBACK_MAX:
        half = TRACEBACK_MAX // 2
        text = f"{text[:half]}\n… ({len(text) - TRACEBACK_MAX:,} characters left out) …\n{text[-half:]}"
    return text


def _take_out_own_frames(told: traceback.TracebackException) -> None:
    told.stack[:] = [frame for frame in told.stack if not frame.filename.startswith(OWN)]
    for inner in (told.__cause__, told.__context__, *(told.exceptions or ())):
        if inner is not None:
            _take_out_own_frames(inner)
