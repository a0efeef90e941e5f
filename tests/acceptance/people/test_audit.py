"""A run is handed to somebody else as one file; its permissions are counted. Through the command line."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest
from cli_shell import Shell

PLAN = """
from milepost import Applied, Key, effect, step, task
from milepost.errors import PermissionMissing


@step
def count(text: str) -> int:
    return len(text)


@effect(permission="queue:write", key=lambda number: str(number), provider="queue")
def post(key: Key, number: int) -> Applied[str]:
    return Applied("posted", ref=f"ref-{number}")


@effect(permission="mail:send")
def mail(key: Key) -> None:
    raise AssertionError("it is not sent")


@task(permissions=["queue:write", "door:open"])
def report(text: str) -> str:
    try:
        mail()
    except PermissionMissing:
        return post(count(text))
    return ""
"""


@pytest.fixture(scope="module")
def done_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which run `october` is done."""
    folder = tmp_path_factory.mktemp("done")
    (folder / "plan.py").write_text(PLAN, encoding="utf-8")
    assert Shell(folder, os.environ).run("run", "plan.py:report", "text=seven", "--run-id", "october").status == 0
    return folder


@pytest.fixture
def done(shell: Shell, done_once: Path) -> Shell:
    """A shell in a copy of it."""
    shutil.copytree(done_once, shell.folder, dirs_exist_ok=True)
    return shell


@pytest.mark.parametrize("form", ["jsonl", "csv", "html"])
def test_a_file_is_written_and_checked_where_the_store_is_not(done: Shell, tmp_path: Path, form: str) -> None:
    """The form follows the name of the file; nothing but the file is needed to check it."""
    name = f"october.{form}"
    written = done.run("audit", "october", "--with-artifacts", "--output", name)
    assert (written.status, written.out) == (0, "")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.move(done.folder / name, elsewhere / name)
    checked = done.run("audit", "verify", str(elsewhere / name), MILEPOST_STORE=str(elsewhere / "none.sqlite"))
    assert checked.status == 0
    assert "october of task report" in checked.out
    assert "ref-5" in (elsewhere / name).read_text(encoding="utf-8")


def test_without_a_file_it_goes_to_stdout(done: Shell) -> None:
    """So that it can be piped, and read by a script."""
    written = done.run("audit", "october")
    (done.folder / "piped").write_text(written.out, encoding="utf-8")
    assert done.run("audit", "verify", "piped", "--json").json["ok"] is True


def test_a_dash_is_stdout_and_no_file(done: Shell) -> None:
    assert done.run("audit", "october", "--output", "-").out.startswith('{"line":1')
    assert not (done.folder / "-").exists()


KEY = "another key of sixteen bytes"


def test_what_cannot_be_told_has_one_status_and_says_what_helps(done: Shell) -> None:
    """A key where the run has none: neither the run nor the file is refused, and the key is what is too much."""
    for words in (("verify", "october"), ("audit", "verify", "october.jsonl")):
        done.run("audit", "october", "--output", "october.jsonl")
        told = done.run(*words, MILEPOST_SEAL_KEY=KEY)
        assert (told.status, "cannot tell" in told.out, "Unset MILEPOST_SEAL_KEY" in told.err) == (7, True, True)
    refused = done.run("resume", "october", MILEPOST_SEAL_KEY=KEY)
    assert (refused.status, "Unset MILEPOST_SEAL_KEY" in refused.err) == (3, True)


def test_an_altered_file_is_refused_by_line_and_name(done: Shell) -> None:
    """Exit status 3; the line and what it is are told."""
    done.run("audit", "october", "--output", "october.jsonl")
    file = done.folder / "october.jsonl"
    file.write_text(file.read_text(encoding="utf-8").replace("ref-5", "ref-6"), encoding="utf-8")
    refused = done.run("audit", "verify", "october.jsonl")
    assert refused.status == 3
    assert "audit-altered: october.jsonl, line" in refused.err
    assert "outcome_recorded post[5]" in refused.err


def test_a_sealed_run_takes_its_key_to_export_and_to_check(shell: Shell) -> None:
    """Without the key the check can tell neither way: a status of its own."""
    (shell.folder / "plan.py").write_text(PLAN, encoding="utf-8")
    key = {"MILEPOST_SEAL_KEY": "a key for tests, long enough"}
    shell.run("run", "plan.py:report", "text=seven", "--run-id", "october", **key)
    assert "seal-key-missing" in shell.run("audit", "october").err
    assert shell.run("audit", "october", "--output", "october.html", **key).status == 0
    assert shell.run("audit", "verify", "october.html", **key).status == 0
    unknown = shell.run("audit", "verify", "october.html")
    assert unknown.status == 7
    assert "cannot tell" in unknown.out
    assert "audit-unproven" in unknown.err
    assert "a key for tests" not in (shell.folder / "october.html").read_text(encoding="utf-8")


def test_verify_and_audit_agree_on_a_store_somebody_changed(done: Shell) -> None:
    """One function judges; the file says what it found, and is refused as well."""
    with sqlite3.connect(done.folder / ".milepost" / "store.sqlite") as connection:
        connection.execute(
            "UPDATE journal SET body = CAST(replace(body, 'ref-5', 'ref-6') AS BLOB) WHERE kind = 'outcome_recorded'"
        )
    verified = done.run("verify", "october", "--json")
    written = done.run("audit", "october", "--output", "october.jsonl", "--json")
    assert (verified.status, written.status) == (3, 3)
    assert written.json["verdicts"] == verified.json["verdicts"]
    refused = done.run("audit", "verify", "october.jsonl", "--json")
    assert refused.status == 3
    assert "outcome_recorded" in refused.json["error"]["message"]


def test_permissions_are_held_used_never_used_and_refused(done: Shell) -> None:
    """What no run ever used can be taken away; what was refused was wanted."""
    (task,) = done.run("permissions", "--json").json["tasks"]
    stands = {one["permission"]: one["stands"] for one in task["permissions"]}
    assert stands == {"queue:write": "used", "door:open": "never used", "mail:send": "refused"}
    told = done.run("permissions", "october")
    assert told.status == 0
    assert "mail:send" in told.out


def test_permissions_add_up_over_the_runs_of_a_task(done: Shell) -> None:
    """Per run and over time; a run that cannot be trusted is named and not counted."""
    done.run("run", "plan.py:report", "text=three", "--run-id", "november")
    (task,) = done.run("permissions", "--task", "report", "--json").json["tasks"]
    used = next(one for one in task["permissions"] if one["permission"] == "queue:write")
    assert (task["runs"], used["held"], used["used"]) == (2, 2, 2)
    with sqlite3.connect(done.folder / ".milepost" / "store.sqlite") as connection:
        connection.execute(
            "UPDATE journal SET body = CAST(replace(body, 'ref-5', 'ref-6') AS BLOB) WHERE kind = 'outcome_recorded'"
        )
    spoilt = done.run("permissions", "--json")
    assert spoilt.status == 3
    assert set(spoilt.json["tasks"][0]["untrusted"]) == {"october", "november"}


def test_a_file_that_cannot_be_written_is_no_bug(done: Shell) -> None:
    """A folder that is not there, a word left out: told in a sentence, each with its status."""
    assert done.run("audit", "october", "--output", "nowhere/october.html").status == 6
    bare = done.run("audit")
    assert (bare.status, "Missing argument 'RUN'" in bare.err) == (2, True)
