"""Every command has help with an example, takes --json, and stands on the page of commands."""

from __future__ import annotations

import pytest
from cli_page import help_of, page
from source_tree import ROOT

from milepost.cli.main import COMMANDS

NAMES = [name for names in COMMANDS.values() for name in names]
WITHOUT_JSON = {"completion", "demo"}  # one prints a script, the other is a show


@pytest.mark.parametrize("name", NAMES)
def test_every_command_shows_an_example(name: str) -> None:
    """The shortest way to learn a command is to see one."""
    assert "Example" in help_of(name)
    assert f"milepost {name}" in help_of(name).partition("Example")[2]


@pytest.mark.parametrize("name", sorted(set(NAMES) - WITHOUT_JSON))
def test_every_command_speaks_to_programs_too(name: str) -> None:
    """What people read, scripts can read."""
    assert "--json" in help_of(name)


def test_the_page_of_commands_is_what_the_commands_say() -> None:
    """One text, two places: `make docs` writes the page again."""
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == page()
