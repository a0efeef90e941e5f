"""Prints docs/cli.md: every command's own help, in the order of `milepost --help`. `make docs` writes the page.

The help texts live beside the commands; this page is a view of them, and a test keeps it one.
"""

from __future__ import annotations

import click

from milepost.cli.main import COMMANDS, cli

WIDTH = 100
HEAD = """\
# The command line

This page is `milepost COMMAND --help`, written by `make docs`. Exit statuses: [exit-statuses.md](exit-statuses.md).
"""


def page() -> str:
    """Return the whole page as Markdown."""
    context = click.Context(cli, info_name="milepost", terminal_width=WIDTH)
    parts = [HEAD]
    for heading, names in COMMANDS.items():
        parts.append(f"## {heading}\n")
        parts += [_section(name, context) for name in names]
    return "\n".join(parts)


def _section(name: str, outer: click.Context) -> str:
    return f"### {name}\n\n```text\n{help_of(name, outer).rstrip()}\n```\n"


def help_of(name: str, outer: click.Context | None = None) -> str:
    """Return a command's help as the command line prints it, at a fixed width."""
    outer = outer or click.Context(cli, info_name="milepost", terminal_width=WIDTH)
    command = cli.get_command(outer, name)
    assert command is not None
    return command.get_help(click.Context(command, info_name=name, parent=outer, terminal_width=WIDTH))


if __name__ == "__main__":
    print(page(), end="")
