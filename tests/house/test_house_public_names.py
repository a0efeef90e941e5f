"""The public names, pinned: adding one is a promise, losing one breaks somebody."""

from __future__ import annotations

import milepost
import milepost.sources
import milepost.verifiers

NAMES = [
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


def test_the_public_names_are_these() -> None:
    """What a user may import from `milepost`."""
    assert sorted(milepost.__all__) == NAMES
    assert [name for name in NAMES if not hasattr(milepost, name)] == []


def test_the_version_is_the_packages() -> None:
    """`milepost --version` and the wheel say the same."""
    from importlib.metadata import version

    assert milepost.__version__ == version("milepost")


def test_the_sources_and_verifiers_are_these() -> None:
    """What a user may import from the two rooms that hold the rest."""
    assert {"Call", "File", "Folder", "Http", "Sql"} <= set(milepost.sources.__all__)
    factories = ["each", "matches_count_of", "max_size", "no_empties", "row_count", "total", "unique"]
    assert [name for name in factories if not callable(getattr(milepost.verifiers, name, None))] == []
