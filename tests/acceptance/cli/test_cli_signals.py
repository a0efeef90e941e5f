"""An orderly stop: at the next boundary, with the lease released, the start given back, exit status 128+n."""

from __future__ import annotations

import signal
import subprocess

import pytest
from cli_shell import Gate, Shell, read_until

SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


def inside(shell: Shell, task: str = "gates") -> tuple[Gate, subprocess.Popen[str]]:
    """Start run one and wait until it is inside its gated step."""
    gate = Gate(shell.folder, "a")
    process = shell.start("run", f"letters.py:{task}", "name=a", "--run-id", "one")
    gate.wait_until_inside()
    return gate, process


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize("task", ["gates", "async_gates"])
def test_a_signal_stops_at_the_next_boundary_and_exits_with_128_plus_n(
    shell: Shell, task: str, number: signal.Signals
) -> None:
    """What ran is finished and recorded; the next process goes on at once, for the lease was given back."""
    gate, process = inside(shell, task)
    process.send_signal(number)
    assert "a second signal stops at once" in read_until(process, "stopping")
    gate.let_go()
    status, out, err = finished(process)
    assert (status, out) == (128 + number, "")
    assert "run-interrupted" in err
    assert "Traceback" not in err
    shown = shell.run("show", "one", "--json").json
    assert (shown["status"], shown["stands"], shown["holder"]) == ("interrupted", "interrupted", None)
    assert [step["path"] for step in shown["steps"]] == ["gated"]
    resumed = shell.run("resume", "one", "--json")
    assert (resumed.status, resumed.json["result"]) == (0, 3)


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_that_comes_in_the_last_step_lets_the_run_be_done(shell: Shell, number: signal.Signals) -> None:
    """The command ends with its run: there is nothing left to stop, and the result is worth more than a status."""
    gate, process = inside(shell, "last_gate")
    process.send_signal(number)
    read_until(process, "stopping")
    gate.let_go()
    status, out, err = finished(process)
    assert (status, out) == (0, "2\n")
    assert "is done" in err


def test_a_second_signal_stops_at_once_and_is_no_worse_than_a_kill(shell: Shell) -> None:
    """The body does not end: the process does, by the signal; a resume starts the step again."""
    gate, process = inside(shell)
    process.send_signal(signal.SIGTERM)
    read_until(process, "stopping")
    process.send_signal(signal.SIGTERM)
    status, _, _ = finished(process)
    assert status == -signal.SIGTERM
    assert shell.run("runs", "--json").json["runs"][0]["stands"] == "died"
    again = shell.start("resume", "one")
    gate.wait_until_inside()
    gate.let_go()
    assert finished(again)[:2] == (0, "3\n")


def test_a_second_starter_is_told_at_once_who_holds_the_run_and_since_when(shell: Shell) -> None:
    """Two starters: one runs, the other is refused with the process, the machine and the time."""
    gate, process = inside(shell)
    second = shell.run("run", "letters.py:gates", "name=a", "--run-id", "one", "--json")
    assert (second.status, second.json["error"]["code"]) == (3, "run-busy")
    assert f"process {process.pid} on" in second.json["error"]["message"]
    assert second.json["error"]["facts"]["since"].startswith("20")
    listed = shell.run("runs", "--json").json["runs"][0]
    assert (listed["stands"], listed["holder"].split()[1]) == ("running", str(process.pid))
    gate.let_go()
    assert finished(process)[:2] == (0, "3\n")


def test_a_cancel_ends_the_run_at_its_next_boundary(shell: Shell) -> None:
    """No new step starts; what ran is kept; the run has ended and cannot be resumed."""
    gate, process = inside(shell)
    asked = shell.run("cancel", "one", "--note", "wrong month")
    assert asked.status == 0
    assert "stops at its next boundary" in asked.err
    read_until(process, "stopping")
    gate.let_go()
    status, out, err = finished(process)
    assert (status, out) == (3, "")
    assert "run-ended" in err or "cancelled" in err
    shown = shell.run("show", "one", "--json").json
    assert (shown["status"], shown["verified_count"]) == ("cancelled", 1)
    assert "wrong month" in shell.run("journal", "one").out
    assert shell.run("resume", "one").status == 3


def test_resume_all_passes_a_signal_on_and_stops(shell: Shell) -> None:
    """The runs are processes of their own; stopping the command stops the one that runs, in order."""
    gate, first = inside(shell)
    first.kill()
    first.communicate()
    process = shell.start("resume", "--all")
    gate.wait_until_inside()
    process.send_signal(signal.SIGTERM)
    read_until(process, "stopping")
    gate.let_go()
    assert finished(process)[0] == 128 + signal.SIGTERM
    assert shell.run("runs", "--json").json["runs"][0]["stands"] == "interrupted"
