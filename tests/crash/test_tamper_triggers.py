"""A trigger in the database that undoes or changes what was just written: no run ends as done over it."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import nesting
import pytest

INSIDE = "deletes a checkpoint inside a step"
TRIGGERS = {
    "deletes a checkpoint": (
        "AFTER INSERT ON journal WHEN NEW.kind = 'step_verified'"
        " BEGIN DELETE FROM journal WHERE rowid = NEW.rowid; END",
        "it is not there",
    ),
    INSIDE: (
        "AFTER INSERT ON journal WHEN NEW.chain = 'both' BEGIN DELETE FROM journal WHERE rowid = NEW.rowid; END",
        "it is not there",
    ),
    "deletes the last record": (
        "AFTER INSERT ON journal WHEN NEW.kind = 'run_ended' BEGIN DELETE FROM journal WHERE rowid = NEW.rowid; END",
        "its head counts",
    ),
    "changes what a record says": (
        "AFTER INSERT ON journal WHEN NEW.kind = 'step_verified' AND NEW.chain = '' BEGIN UPDATE journal SET"
        " body = CAST(replace(CAST(body AS TEXT), 'attempt\":1', 'attempt\":2') AS BLOB) WHERE rowid = NEW.rowid; END",
        "its seal does not fit",
    ),
    "changes the head": (
        "AFTER UPDATE OF head_seal ON runs WHEN NEW.status = 'done'"
        " BEGIN UPDATE runs SET head_seal = zeroblob(32) WHERE number = NEW.number; END",
        "list of runs",
    ),
}


@pytest.mark.parametrize(
    ("what", "plan"), [(w, p) for w in TRIGGERS for p in ("nested", "flat") if (w, p) != (INSIDE, "flat")]
)
def test_a_run_over_a_trigger_does_not_end_as_done(what: str, plan: str, tmp_path: Path) -> None:
    """What was appended is read back before anybody is told that the run is done; exit status 3, by name."""
    trigger, found = TRIGGERS[what]
    assert command(tmp_path, "run", f"{nesting.__file__}:{plan}", "--run-id", "first").returncode == 0
    with closing(sqlite3.connect(tmp_path / "store.sqlite")) as connection:
        connection.execute(f"CREATE TRIGGER altered {trigger}")
        connection.commit()
    ended = command(tmp_path, "run", f"{nesting.__file__}:{plan}", "--run-id", "second")
    told = json.loads(ended.stdout)
    assert (ended.returncode, told["status"], told["error"]["code"]) == (3, None, "corrupt-record")
    assert found in told["error"]["message"]


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environ: Mapping[str, str] = {
        **os.environ,
        "MILEPOST_STORE": str(folder / "store.sqlite"),
        "XDG_STATE_HOME": str(folder / "state"),
    }
    command = [sys.executable, "-m", "milepost", *words, "--json"]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
