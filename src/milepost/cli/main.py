"""`milepost`: finds the command, and is the one place that turns how it ended into an exit status.

Commands are imported when they are called, so that `milepost --help` starts at once.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import click

import milepost
from milepost.cli.output import UNWRITABLE, note, open_streams, unwritten
from milepost.cli.telling import lacks_descriptors, no_descriptors, tell, tell_usage
from milepost.errors import MilepostError, UnavailableError, UnknownTask

COMPLETE = "_MILEPOST_COMPLETE"
"""Set by the completion script of a shell, which asks what may come next."""
BUG = 70
"""Exit status for an error of our own."""
COMMANDS: dict[str, dict[str, str]] = {
    "Work": {
        "run": "Start a run of a task, or go on with the one of this id.",
        "resume": "Go on with a run where it stood; --check only says what that would do.",
        "watch": "Resume what is answered or due, restart what died, tell people; until stopped.",
        "cancel": "Ask a run to end: no new step starts.",
        "fork": "End a run and begin another one from before one of its steps.",
        "demo": "Watch a month of invoices being killed and resumed.",
    },
    "Look": {
        "runs": "List the runs of this store.",
        "show": "Show what a run has done, what is open and what comes next.",
        "journal": "Print every record of a run, one a line.",
        "brief": "Say where a run stands in 2,000 characters, to hand to a model.",
        "ui": "Show inbox, runs and health in a browser, and answer there.",
        "permissions": "Show which permissions were held, used, never used and refused.",
        "map": "Print a task's steps, effects and permissions without running it.",
    },
    "Decide": {
        "inbox": "List the open questions, or show one with its evidence and choices.",
        "answer": "Answer a question.",
        "shadow": "Compare what shadow runs would have written with what was done.",
        "promote": "Turn a task from shadow to live, with an approval.",
        "notify": "Show who was told of which question; send a test.",
    },
    "Keep": {
        "drill": "Kill a task at every point, resume it, compare with an undisturbed run.",
        "verify": "Prove every seal, digest and artifact of a run.",
        "audit": "Write a run as one file for others, or check such a file.",
        "doctor": "Examine the store, the clock and the folders around it.",
        "prune": "Delete whole ended runs.",
        "completion": "Print the script that completes commands in a shell.",
    },
}

EPILOG = """\b
Exit statuses:
  0 done            1 failed (the task's own error)    2 misuse
  3 refused         4 waits for a person               5 waits for a time
  6 unavailable     7 cannot be told (no seal key)     128+n stopped by signal n
"""


class Commands(click.Group):
    """The commands by name; each lives in a file of its own and is imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for names in COMMANDS.values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = import_module(f"milepost.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, names in COMMANDS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(10), about) for name, about in names.items()])


@click.group(cls=Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(milepost.__version__, message="milepost %(version)s")
def cli() -> None:
    """Verified checkpoints for long agent tasks: what dies resumes where it stood.

    \b
    Example:
      milepost run plan.py:reconcile month=2026-10
      milepost resume
    """


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit with its status."""
    status = status_of(list(sys.argv[1:] if arguments is None else arguments))
    try:
        sys.stderr.flush()
    except UNWRITABLE:
        # what it did not take would be tried once more by the interpreter, and end it with a status of its own
        _drop(2)
    sys.exit(status)


def status_of(arguments: list[str]) -> int:
    """Run one command and return its exit status; everything foreseen is told without a traceback."""
    open_streams()
    if COMPLETE in os.environ:
        cli.main(prog_name="milepost")
    try:
        status = _called(arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        _drop(1)  # nobody reads any more: nothing is left to say
        return 128 + signal.SIGPIPE
    except UnavailableError as error:  # an error told with --json, which stdout does not take either
        _drop(1)
        return tell(error, as_json=False)
    except Exception as error:  # noqa: BLE001 – the last door: what gets here is a bug of ours and says so
        if lacks_descriptors(error):
            return _told(no_descriptors(), arguments)
        return _unwritten(error) if isinstance(error, OSError) else _bug()


def _told(error: MilepostError, arguments: list[str]) -> int:
    return tell(error, as_json="--json" in arguments)


def _unwritten(error: OSError) -> int:
    """Tell that stdout did not take a text. An error with a file's name came from elsewhere: that is a bug of ours."""
    if error.filename is not None:
        return _bug()
    _drop(1)
    return tell(unwritten(error), as_json=False)


def _drop(stream: int) -> None:
    """Let stdout (1) or stderr (2) go nowhere from here on."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream)


def _bug() -> int:
    note(traceback.format_exc(), lines=True)
    note("This is a bug in Milepost; what is recorded stands. Please report it with the lines above.")
    return BUG


def _called(arguments: list[str]) -> int:
    as_json = "--json" in arguments
    try:
        with cli.make_context("milepost", arguments) as context:
            status = cli.invoke(context)
        return status if isinstance(status, int) else 0
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 128 + signal.SIGINT
    except click.ClickException as error:
        return tell_usage(error, as_json=as_json)
    except MilepostError as error:
        is_starved = isinstance(error, UnknownTask) and lacks_descriptors(error)
        return tell(no_descriptors() if is_starved else error, as_json=as_json)
