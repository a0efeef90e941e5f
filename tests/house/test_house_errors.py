"""Every error has a stable code, a hint and one exit status; broad handlers stand in listed places only."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from source_tree import ROOT, SRC, broad_handlers, python_files

from milepost import errors
from milepost.errors import MilepostError, QuestionError, RunInterrupted, Signal
from milepost.records.model import QuestionKind

ERRORS = sorted(
    (c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, MilepostError)), key=lambda c: c.__name__
)
SENTENCE_END = (".", "`")


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_every_error_has_a_code_of_its_own_and_says_what_to_do(error: type[MilepostError]) -> None:
    """Scripts match the code; people read the hint."""
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", error.__dict__.get("code", ""))
    assert error.hint != MilepostError.hint or error is MilepostError
    assert error.hint.endswith(SENTENCE_END)


def test_no_two_errors_share_a_code() -> None:
    """A code means one thing."""
    assert [code for code, count in Counter(error.code for error in ERRORS).items() if count > 1] == []


def test_every_family_has_its_exit_status_and_the_page_says_so() -> None:
    """One status, one meaning: the class, the tree on top of errors/ and the page agree."""
    page = (ROOT / "docs" / "exit-statuses.md").read_text(encoding="utf-8")
    families = [error for error in ERRORS if MilepostError in error.__bases__ and error is not RunInterrupted]
    rows = {row.split("|")[1].strip(): row for row in page.splitlines() if row.startswith("| ")}
    for family in families:
        assert f"`{family.__name__}`" in rows[str(family.exit_status)]
    assert "`RunInterrupted`" in rows["128+n"]
    assert RunInterrupted(run_id="r", signal_number=15).exit_status == 143


def test_no_error_leaves_its_family() -> None:
    """An error's status is its family's, so that a reader of the tree knows it."""
    for error in ERRORS:
        family = next((base for base in error.__mro__ if MilepostError in base.__bases__), error)
        assert error is RunInterrupted or error.exit_status == family.exit_status


def test_every_kind_of_question_has_its_error_and_its_row() -> None:
    """A caller can catch each kind; a reader finds each kind and its choices on the page."""
    codes = {error.code.replace("-", "_") for error in ERRORS if issubclass(error, QuestionError)}
    assert codes == {kind.value for kind in QuestionKind} | {"question"}
    page = (ROOT / "docs" / "resume.md").read_text(encoding="utf-8")
    assert [kind for kind in QuestionKind if f"| `{kind.value}` |" not in page] == []


def test_signals_are_no_exceptions() -> None:
    """A broad `except Exception` in a user's step cannot swallow them."""
    signals = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, Signal)]
    assert len(signals) > 3
    assert not any(issubclass(signal, Exception) for signal in signals)


BROAD_HANDLERS = {
    "cli/load.py": ["_alone", "_imported"],
    "cli/main.py": ["status_of"],
    "drill/campaign.py": ["Campaign._work", "Campaign.carry_out"],
    "drill/child.py": ["carry_out"],
    "notify/delivery.py": ["trouble_of"],
    "protocol/approving.py": ["Approving.said"],
    "protocol/failure.py": ["_text"],
    "protocol/landing.py": ["_unwrapped"],
    "protocol/request.py": ["_named"],
    "records/arguments.py": ["ArgumentsCodec.decode", "ArgumentsCodec.encode", "ArgumentsCodec.round_trip"],
    "records/codec.py": ["Codec.decode", "Codec.encode", "Codec.round_trip"],
    "records/shapes/fields.py": ["build_from"],
    "runtime/adrive.py": ["_look_up", "_run_here", "_verify", "drive_async"],
    "runtime/bodies.py": ["look_up", "run_in", "verify"],
    "runtime/drive.py": ["drive"],
    "runtime/journey.py": ["journey"],
    "runtime/amap.py": ["_each.work"],
    "runtime/map.py": ["map_calls.work"],
    "runtime/shield.py": ["_Work._carried_out"],
    "runtime/leases.py": ["take"],
    "runtime/scope.py": ["carry.carried"],
    "runtime/start.py": ["_first_start", "run_task", "run_task_async"],
    "sources/call.py": ["_imported", "observe_call"],
    "sources/naming.py": ["_text_of"],
    "stores/sqlite/committer.py": ["_call"],
    "stores/sqlite/connection.py": ["Writer.transaction"],
    "stores/sqlite/leases.py": ["Leases._grant"],
    "stores/sqlite/locks.py": ["LockFiles.take"],
    "stores/sqlite/store.py": ["SqliteStore.release"],
    "stores/sqlite/writing.py": ["BatchWriter._attempt"],
    "verifiers.py": ["_shown", "_verdict"],
}
"""Where `except Exception` or `except BaseException` may stand: around users' functions, around what must be undone and
is raised again, and at the last door. A new place is a decision: add it here, with its reason beside the handler."""


def test_everything_is_caught_in_listed_places_only() -> None:
    """A handler that catches everything hides our own mistakes wherever nobody expects it."""
    found = {path.relative_to(SRC).as_posix(): sorted(broad_handlers(path)) for path in python_files("src")}
    assert {name: places for name, places in found.items() if places} == BROAD_HANDLERS
