"""Milepost: verified checkpoints for long AI-agent tasks.

Everything a user imports is named here; `milepost.errors`, `milepost.sources` and `milepost.verifiers` hold the rest.
"""

from milepost.api import AsyncEffect, AsyncStep, AsyncTask, Effect, RunHandle, Step, Task, current_run, fork, sleep
from milepost.decorators import effect, step, task
from milepost.errors import Declined, MilepostError, QuestionError, RunWaiting, StepFailed
from milepost.protocol.failure import VerificationFailed
from milepost.protocol.keys import Key
from milepost.protocol.limits import Limits, Rate
from milepost.protocol.outcomes import Applied, CannotTell, Found, NotApplied, NotFound
from milepost.protocol.policy import Retry
from milepost.records.secret import Secret
from milepost.runtime.context import Heartbeat, heartbeat, last_heartbeat, spent
from milepost.runtime.scope import carry
from milepost.sources import Folder, Http, Sql

__version__ = "0.1.0"

__all__ = [
    "Applied",
    "AsyncEffect",
    "AsyncStep",
    "AsyncTask",
    "CannotTell",
    "Declined",
    "Effect",
    "Folder",
    "Found",
    "Heartbeat",
    "Http",
    "Key",
    "Limits",
    "MilepostError",
    "NotApplied",
    "NotFound",
    "QuestionError",
    "Rate",
    "Retry",
    "RunHandle",
    "RunWaiting",
    "Secret",
    "Sql",
    "Step",
    "StepFailed",
    "Task",
    "VerificationFailed",
    "carry",
    "current_run",
    "effect",
    "fork",
    "heartbeat",
    "last_heartbeat",
    "sleep",
    "spent",
    "step",
    "task",
]
