"""What the first record of a run says of where it is started: looked at before anything is written.

Called by `api` and by the command line before either makes a store.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from milepost.errors import UnavailableError
from milepost.protocol.spec import TaskSpec
from milepost.records.outside import checked_text
from milepost.runtime.children import agent_of

RENAME = "Give the folder or the file a name in UTF-8, and start there."


def check_surroundings(task: TaskSpec, environ: Mapping[str, str]) -> None:
    """Refuse a start that no record could tell of. Raises: BadName, BadOption, UnavailableError."""
    agent_of(environ, task.name)
    checked_text("the task's place", task.target, RENAME)
    try:
        folder = os.getcwd()
    except OSError as error:
        reason = f"the working folder is gone or cannot be read: {error.strerror}"
        raise UnavailableError(reason=reason, hint="Start from a folder that is there.") from None
    checked_text("the working folder", folder, RENAME)
