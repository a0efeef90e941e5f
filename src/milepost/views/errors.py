"""An error of ours as data and as a hint to be typed as it stands. Pure."""

from __future__ import annotations

import shlex
from typing import Any

from milepost.errors import MilepostError, StepFailed
from milepost.records.secret import redact


def hint_of(error: MilepostError) -> str:
    """Return an error's hint with the run and the question it is about filled in, to be typed as it stands.

    A step that failed by one of our errors is mended as that error says.
    """
    hint = str(error.hint)
    if isinstance(error, StepFailed) and isinstance(error.__cause__, MilepostError):
        hint = f"{hint_of(error.__cause__)} Then `milepost resume RUN`: finished steps are not repeated."
    for word, fact in (("RUN", "run_id"), ("QUESTION", "question_id")):
        if fact in error.facts:
            hint = hint.replace(f" {word}", f" {shlex.quote(str(error.facts[fact]))}")
    return hint


def error_object(error: MilepostError) -> dict[str, Any]:
    """Return an error as data: code, message, hint, exit status and its facts."""
    facts = {
        name: fact if isinstance(fact, int) else redact(str(fact))
        for name, fact in error.facts.items()
        if name != "hint"
    }
    message = redact(str(error))
    return {
        "code": error.code,
        "message": message,
        "hint": hint_of(error),
        "exit_status": error.exit_status,
        "facts": facts,
    }
