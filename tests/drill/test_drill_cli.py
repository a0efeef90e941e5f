"""`milepost drill` as a person types it: its statuses, its JSON, its JUnit file, the command that replays a point."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from drilling import TASKS

PROGRAM = str(Path(sys.executable).with_name("milepost"))


def drill(*arguments: str, cwd: Path, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, "PYTHONPATH": str(TASKS), **(environ or {})}
    return subprocess.run(
        [PROGRAM, "drill", *arguments], cwd=cwd, env=given, capture_output=True, text=True, check=False, timeout=240
    )


def reported(*arguments: str, cwd: Path) -> tuple[int, Any]:
    done = drill(*arguments, "--json", cwd=cwd)
    return done.returncode, json.loads(done.stdout)


def test_exit_status_is_0_only_if_everything_held(tmp_path: Path) -> None:
    good, faulty = f"{TASKS}/good_tasks.py:needs_setup", f"{TASKS}/faulty_tasks.py:writes_in_a_step"
    held = drill(good, "--setup", "good_tasks:desk_of_words", "--points", "1", cwd=tmp_path)
    assert held.returncode == 0, held.stderr
    assert held.stdout.splitlines()[-1].startswith("Everything held")
    failed = drill(faulty, "--observe", "faulty_tasks:ledger", "--point", "body:durable:1", cwd=tmp_path)
    assert failed.returncode == 1, failed.stderr
    assert "the outside has 2 more than undisturbed" in failed.stdout


def test_the_command_a_failure_names_replays_it(tmp_path: Path) -> None:
    """One point, one command: what failed on a build server fails on a desk."""
    first = drill(f"{TASKS}/faulty_tasks.py:lookup_lies", "--point", "send:durable:1", cwd=tmp_path)
    assert first.returncode == 1
    (line,) = [line for line in first.stdout.splitlines() if line.startswith("  replay: ")]
    words = shlex.split(line.removeprefix("  replay: "))
    assert words[:2] == ["milepost", "drill"]
    again = drill(*words[2:], cwd=tmp_path)
    assert again.returncode == 1
    assert "effect book was sent again" in again.stdout


def test_json_holds_every_trial_and_the_table(tmp_path: Path) -> None:
    status, report = reported(f"{TASKS}/faulty_tasks.py:lookup_lies", "--points", "2", "--seed", "7", cwd=tmp_path)
    assert status == (0 if report["held"] else 1)
    assert report["total"]["tried"] == sum(counted["tried"] for counted in report["table"].values())
    assert {"kind", "point", "verdict", "record", "said", "differences"} <= report["outcomes"][0].keys()


def test_junit_file_parses_and_counts_like_the_table(tmp_path: Path) -> None:
    target = f"{TASKS}/faulty_tasks.py:starts_a_process"
    done = drill(target, "--points", "1", "--at-once", "1", "--junit", "drill.xml", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    root = ElementTree.parse(tmp_path / "drill.xml").getroot()
    (suite,) = root
    assert (root.tag, suite.tag) == ("testsuites", "testsuite")
    assert set(suite.attrib) == {"name", "time", "tests", "failures", "skipped"}
    cases = suite.findall("testcase")
    assert {name for case in cases for name in case.attrib} == {"classname", "name", "time"}
    assert suite.get("tests") == str(len(cases))
    failures = [case.get("name") for case in cases if case.find("failure") is not None]
    assert failures == ["compute process"]
    assert suite.get("failures") == "1"


def test_inputs_are_read_as_run_reads_them(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("alpha", encoding="utf-8")
    target = f"{TASKS}/good_tasks.py:small"
    given = f"source={tmp_path / 'words.txt'}"
    done = drill(target, given, "--observe", "good_tasks:ledger", "--points", "1", "--plain", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "outside the drill's world" in done.stdout, "what belongs to the user is never changed"
    assert " trials, 0 failed" in done.stdout + done.stderr, "how far it is, while it goes on"
    assert (tmp_path / "words.txt").read_text(encoding="utf-8") == "alpha"


def test_misuse_is_told_with_status_2(tmp_path: Path) -> None:
    for arguments, said in (
        (["--observe", "good_tasks:nothing"], "--observe 'good_tasks:nothing' cannot be imported"),
        (["--observe", "good"], "expected MODULE:FUNCTION"),
        (["--points", "none"], "expected `all` or a number"),
        (["--ignore", "summary"], "expected [STEP]$.field"),
    ):
        done = drill(f"{TASKS}/good_tasks.py:restless", *arguments, cwd=tmp_path)
        assert done.returncode == 2, done.stderr
        assert said in done.stderr
