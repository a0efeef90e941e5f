"""An error of ours as data, and its hint. Pure."""

from __future__ import annotations

import shlex
from typing import Any

from milepost.errors import MilepostError, StepFailed
from milepost.records.secret import redact


def hint_of(error: MilepostError) -> str:
    """Return an error's hint. A step that failed by one of our errors is mended as that error says."""
    if isinstance(error, StepFailed) and isinstance(error.__cause__, MilepostError):
        resume = f"`milepost resume {shlex.quote(str(error.facts['run_id']))}`"
        return f"{hint_of(error.__cause__)} Then {resume}: finished steps are not repeated."
    return str(error.hint)


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
