"""Where a run is kept and who remembers it: said when it is new, said when it is missing."""

from __future__ import annotations

import pytest
from cli_shell import Shell

RUN = ("run", "letters.py:letters", 'names=["ann"]', "--run-id", "one")


def test_a_store_that_a_run_makes_is_named_once(shell: Shell) -> None:
    """Another folder or a typo in MILEPOST_STORE starts all over: that is to be seen."""
    assert f"new store {shell.folder}/.milepost/store.sqlite\n" in shell.run(*RUN).err
    assert "new store" not in shell.run(*RUN).err
    assert f"new store {shell.folder}/typo.sqlite\n" in shell.run(*RUN, MILEPOST_STORE="typo.sqlite").err


def test_a_witness_that_cannot_be_written_is_told_once(shell: Shell) -> None:
    """Without it a restored backup goes on as if nothing had happened."""
    said = shell.run(*RUN, XDG_STATE_HOME="/proc")
    assert said.status == 0
    assert said.err.count("no witness: /proc cannot be written") == 1
    assert "no witness" in shell.run("resume", "--all", XDG_STATE_HOME="/proc").err
    assert "no witness" not in shell.run("resume", "one").err


def test_doctor_refuses_a_witness_that_cannot_be_written(shell: Shell) -> None:
    shell.run(*RUN)
    for places in ({"XDG_STATE_HOME": "/proc"}, {"XDG_STATE_HOME": "relative", "HOME": "/nonexistent"}):
        ended = shell.run("doctor", "--json", **places)
        (found,) = [finding for finding in ended.json["findings"] if finding["check"] == "witness"]
        assert (ended.status, found["ok"]) == (3, False)
        assert "none can be kept" in found["found"]
    assert not (shell.folder / "relative").exists()


LONG = "n" * 300


@pytest.mark.parametrize(
    ("status", "arguments", "environ"),
    [
        (2, ("audit", "one", "--output", LONG), {}),
        (2, ("audit", "one", "--output", ""), {}),
        (2, ("audit", "verify", LONG), {}),
        (2, ("drill", "letters.py:letters", "--junit", LONG), {}),
        (2, ("drill", "letters.py:letters", "--keep", ""), {}),
        (2, ("run", f"{LONG}."), {}),
        (2, ("run", f"{LONG}.py:letters"), {}),
        (3, ("shadow", "report", "dry", "--against", LONG), {}),
        (2, ("shadow", "report", "dry", "--against", f"{LONG}.csv"), {}),
        (6, RUN, {"MILEPOST_STORE": LONG}),
        (6, ("runs",), {"MILEPOST_STORE": LONG}),
        (0, RUN, {"XDG_STATE_HOME": f"/{LONG}"}),
    ],
)
def test_a_path_no_system_takes_is_told_as_such(
    shell: Shell, status: int, arguments: tuple[str, ...], environ: dict[str, str]
) -> None:
    """A shell's variable that was empty, or held a text instead of a name, is no bug of ours."""
    if "dry" in arguments:
        shell.run(*RUN[:3], "--run-id", "dry", "--shadow")
    ended = shell.run(*arguments, **environ)
    assert (ended.status, "Traceback" in ended.err) == (status, False), ended.err
