"""Every command has help with an example and takes --json; the command line starts at once."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module

import click
import pytest
from cli_shell import Shell

from milepost.cli.main import COMMANDS
from milepost.records.model import KINDS
from milepost.views.summaries import _SAYS

NAMES = [name for names in COMMANDS.values() for name in names]


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_help_with_an_example_and_takes_json(name: str) -> None:
    """Whoever types --help finds one line to copy."""
    command: click.Command = import_module(f"milepost.cli.{name}").command
    assert command.name == name
    text = command.get_help(click.Context(command, info_name=f"milepost {name}"))
    assert f"Example:\n    milepost {name}" in text or "milepost completion" in text
    doors = command.commands.values() if isinstance(command, click.Group) else [command]
    assert all(any(option.name == "as_json" for option in door.params) for door in doors)


def test_help_loads_neither_rich_nor_any_command(shell: Shell) -> None:
    """What `--help` does not need is not imported: it answers at once."""
    code = (
        "import sys; from milepost.cli.main import status_of\n"
        "status = status_of(['--help'])\n"
        "loaded = [m for m in sys.modules if m.startswith('rich') or m == 'milepost.cli.run' or m == 'pydantic']\n"
        "sys.stderr.write(repr((status, loaded)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=shell.environ)
    assert done.stderr == "(0, [])"


def test_version_and_module_are_the_same_program(shell: Shell) -> None:
    """`milepost` and `python -m milepost` say the same."""
    from milepost import __version__

    assert shell.run("--version").out == f"milepost {__version__}\n"


def test_every_kind_of_record_can_be_said_in_one_line() -> None:
    """A new kind of record without words would stop the journal."""
    assert set(_SAYS) == set(KINDS.values())


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: Shell, name: str) -> None:
    """The three shells people use."""
    assert "_MILEPOST_COMPLETE" in shell.run("completion", name).out


def test_completion_offers_run_ids(shell: Shell) -> None:
    """The ids nobody can remember."""
    shell.run("run", "letters.py:letters", 'names=["ann"]', "--run-id", "october")
    offered = shell.run(_MILEPOST_COMPLETE="bash_complete", COMP_WORDS="milepost show o", COMP_CWORD="2").out
    assert "october" in offered


def test_a_run_id_is_made_and_printed_first(shell: Shell) -> None:
    """The id is known before anything can go wrong."""
    ended = shell.run("run", "letters.py:letters", 'names=["ann"]')
    made, first = ended.err.splitlines()[:2]
    assert made.startswith("new store ")
    assert first.startswith("run letters-2")
    listed = shell.run("runs", "--json").json["runs"][0]["run_id"]
    assert first == f"run {listed}"


def test_a_module_and_a_file_in_a_package_are_imported_as_python_would(shell: Shell) -> None:
    """A file inside a package keeps its package, so that its relative imports work."""
    package = shell.folder / "parcel" / "inner"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "words.py").write_text("WORD = 'hello'\n")
    (package / "plan.py").write_text(
        "from milepost import step, task\nfrom .words import WORD\n\n"
        "@step\ndef say() -> str:\n    return WORD\n\n@task\ndef plan() -> str:\n    return say()\n"
    )
    assert shell.run("run", "parcel/inner/plan.py", "--run-id", "a").out == "hello\n"
    assert shell.run("run", "parcel.inner.plan:plan", "--run-id", "b").out == "hello\n"
    assert json.loads(shell.run("resume", "a", "--json").out)["result"] == "hello"


def test_an_async_task_without_a_result_writes_nothing_to_stdout(shell: Shell) -> None:
    """`None` is not a result anybody wants to pipe."""
    ended = shell.run("run", "letters.py:quiet", "--run-id", "q")
    assert (ended.status, ended.out) == (0, "")
    assert shell.run("resume", "q", "--json").json["result"] is None


def test_what_a_module_prints_while_it_is_imported_does_not_get_into_the_json(shell: Shell) -> None:
    """Also what it starts as a child process."""
    (shell.folder / "loud.py").write_text(
        "import subprocess\nfrom milepost import task\n\nprint('imported')\nsubprocess.run(['echo', 'a child'])\n\n"
        "@task\ndef loud() -> int:\n    subprocess.run(['echo', 'a child'])\n    return 1\n"
    )
    assert shell.run("map", "loud.py", "--json").json["task"] == "loud"
    ended = shell.run("run", "loud.py", "--run-id", "one", "--json")
    assert ended.json["result"] == 1
    assert ended.err.count("a child") == 2
    assert shell.run("resume", "one", "--json").json["result"] == 1
