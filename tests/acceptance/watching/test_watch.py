"""`milepost watch` with real processes: what died is started again, what is answered goes on, poison is left alone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from cli_shell import Gate, Shell, read_until
from hooks import Hook

from milepost.config import NotifyConfig, WatchConfig, read_config
from milepost.stores.sqlite.store import SqliteStore


class Watch:
    """A watch under way: its events, as it says them."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def until(self, event: str, run_id: str | None = None) -> dict[str, Any]:
        """Read on to an event, of a run where one is named."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            found: dict[str, Any] = json.loads(line)
            if found["event"] == event and run_id in (None, found.get("run_id")):
                return found
        raise AssertionError(f"it ended without saying {event}: {self.process.stderr.read()}")  # type: ignore[union-attr]


@contextmanager
def watching(shell: Shell, *words: str) -> Iterator[Watch]:
    process = shell.start("watch", "--json", *words)
    try:
        yield Watch(process)
    finally:
        process.kill()
        process.communicate()


def _settings(shell: Shell, text: str) -> None:
    (shell.folder / "milepost.toml").write_text(text, encoding="utf-8")


def _status(shell: Shell, run_id: str) -> str:
    store = SqliteStore(shell.folder / ".milepost" / "store.sqlite", create=False)
    row = store.run(run_id)
    store.close()
    assert row is not None
    return str(row.progress.status)


def _events(text: str) -> list[tuple[Any, ...]]:
    found = [json.loads(line) for line in text.splitlines()]
    return [(e["event"], *(e[name] for name in ("why", "status", "starts") if name in e)) for e in found]


def _killed_inside(shell: Shell) -> Gate:
    """Start a run and kill it in its body; return the gate where it stood."""
    gate = Gate(shell.folder, "gate")
    run = shell.start("run", "dying.py:gated", "--run-id", "r")
    gate.wait_until_inside()
    run.kill()
    run.communicate()
    return gate


def test_a_run_that_was_killed_is_started_again_and_a_stop_reaches_what_runs(shell: Shell) -> None:
    """kill -9 of a run, and then SIGTERM of the watch: the first costs nothing, the second stops in order."""
    gate = _killed_inside(shell)
    with watching(shell) as watch:
        assert watch.until("started", "r")["why"] == "died"
        gate.wait_until_inside()
        second = shell.run("watch", "--once")
        assert second.status == 3
        assert f"process {watch.process.pid} on " in second.err
        watch.process.send_signal(signal.SIGTERM)
        assert watch.until("stopping") == {"event": "stopping", "signal": 15, "runs": 1} | {"at": _any()}
        read_until(watch.process, "stopping at the next boundary")  # says the run itself
        gate.let_go()
        assert watch.until("ended", "r")["status"] == 143
        watch.until("stopped")
        assert watch.process.wait() == 143
    assert _status(shell, "r") == "interrupted"
    assert _events(shell.run("watch", "--once", "--json").out)[1:3] == [("started", "interrupted"), ("ended", 0)]


class _any:
    """Equals everything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def test_an_answered_run_goes_on_by_itself(shell: Shell) -> None:
    """Who answers in the inbox need not know how a run is resumed."""
    assert shell.run("run", "asking.py", "--run-id", "r").status == 4
    (shell.folder / "there").touch()
    with watching(shell) as watch:
        watch.until("watching")
        assert shell.run("answer", shell.question(), "again").status == 0
        assert watch.until("started", "r")["why"] == "answered"
        assert watch.until("ended", "r")["status"] == 0
    assert _status(shell, "r") == "done"


def test_a_run_that_waits_goes_on_when_it_is_due(shell: Shell) -> None:
    assert shell.run("run", "dying.py:naps", "--run-id", "r", "--no-wait").status == 5
    with watching(shell) as watch:
        assert watch.until("started", "r")["why"] == "due"
        assert watch.until("ended", "r")["status"] == 0


def test_a_poisoned_run_is_left_alone_at_the_bound_also_after_a_restart(shell: Shell) -> None:
    """A run that kills its process each time must not be run all night, whoever restarts the watch."""
    _settings(shell, '[watch]\nrestarts = 2\nfirst_wait = "0.001s"\n')
    assert shell.run("run", "dying.py:poisoned", "--run-id", "r").status == 9
    first = _events(shell.run("watch", "--once", "--json").out)
    died = [("started", "died"), ("ended", 9)]
    assert first == [("watching",), *died, *died, ("given_up", 2), ("stopped",)]
    again = _events(shell.run("watch", "--once", "--json").out)
    assert again == [("watching",), ("given_up", 2), ("stopped",)]


def test_a_watch_that_dies_does_not_forget_its_starts(shell: Shell) -> None:
    """The start is counted before the process begins: a machine that goes down with it is no way around the bound."""
    _settings(shell, "[watch]\nrestarts = 1\n")
    gate = _killed_inside(shell)
    with watching(shell) as watch:
        pid = watch.until("started", "r")["pid"]
        gate.wait_until_inside()
        os.kill(pid, signal.SIGKILL)
        watch.process.kill()
    ended = _events(shell.run("watch", "--once", "--json").out)
    assert ended == [("watching",), ("given_up", 1), ("stopped",)]


def test_a_watch_reminds(shell: Shell, hook: Callable[..., Hook]) -> None:
    """Nobody has to look for what waits: the watch tells again, once."""
    there = hook()
    _settings(shell, f'[notify]\nurls = ["{there.url}"]\nremind_after = "0.2s"\n')
    assert shell.run("run", "asking.py", "--run-id", "r").status == 4
    with watching(shell) as watch:
        watch.until("told")
    assert [taken["title"].partition(":")[0] for taken in there.taken] == ["A run asks", "Reminder"]


PAGE = Path(__file__).parents[3] / "docs" / "watching.md"


def _block(language: str) -> str:
    return PAGE.read_text(encoding="utf-8").partition(f"```{language}\n")[2].partition("```")[0]


def test_the_settings_of_the_page_are_read(tmp_path: Path) -> None:
    """What docs/watching.md shows as an example is one, with every key there is."""
    file = tmp_path / "milepost.toml"
    file.write_text(_block("toml"), encoding="utf-8")
    found = read_config(file)
    assert found.notify.reaches_somebody
    tables = tomllib.loads(_block("toml"))
    assert set(tables["notify"]) == {field.name for field in fields(NotifyConfig)}
    assert set(tables["watch"]) == {field.name for field in fields(WatchConfig)}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_takes_the_unit_of_the_page(tmp_path: Path) -> None:
    """A unit that is pasted from a page and does not start is worse than none."""
    unit = tmp_path / "milepost-project.service"
    text = (
        _block("ini").replace("/srv/project/.venv/bin/milepost", sys.executable).replace("/srv/project", str(tmp_path))
    )
    unit.write_text(text.replace("User=milepost", "User=root"), encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
