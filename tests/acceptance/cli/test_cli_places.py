"""Where a run is kept and who remembers it: said when it is new, said when it is missing."""

from __future__ import annotations

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
