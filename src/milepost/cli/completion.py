"""`milepost completion`: the script that completes commands, runs and questions in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from milepost.cli.main import COMPLETE
from milepost.cli.options import json_option
from milepost.cli.output import emit, say


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@json_option
def command(shell: str, as_json: bool) -> int:
    """Print the script that completes commands, run ids and question ids.

    \b
    Example:
      eval "$(milepost completion bash)"
    """
    root = click.get_current_context().find_root()
    found = get_completion_class(shell)
    assert found is not None
    script = found(root.command, {}, "milepost", COMPLETE).source()
    if as_json:
        emit({"shell": shell, "script": script})
    else:
        say(script, lines=True)
    return 0
