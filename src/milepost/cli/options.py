"""The options and arguments that several commands share, with what a shell completes for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])


class _Completed(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.2
    """A text a shell can complete from what is in the store; without a store it completes nothing."""

    name = "text"

    def __init__(self, choices: Callable[[], list[tuple[str, str]]]) -> None:
        self._choices = choices

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from milepost.errors import MilepostError

        try:
            found = self._choices()
        except MilepostError:
            return []
        return [CompletionItem(value, help=about) for value, about in found if value.startswith(incomplete)]


def _run_ids() -> list[tuple[str, str]]:
    from milepost.cli.opened import the_store

    return [(row.run_id, row.progress.status) for row in the_store().runs()]


def _question_ids() -> list[tuple[str, str]]:
    from milepost.cli.opened import the_store

    return [(row.question_id, row.sentence) for row in the_store().questions()]


RUN = _Completed(_run_ids)
QUESTION = _Completed(_question_ids)


def json_option(command: F) -> F:
    """Add --json, which every command takes."""
    return click.option("--json", "as_json", is_flag=True, help="Write JSON to stdout.")(command)


def wait_options(command: F) -> F:
    """Add what run and resume share: --no-wait and --plain."""
    wait = click.option("--no-wait", is_flag=True, help="Leave with status 5 when the run has to wait for a time.")
    plain = click.option("--plain", is_flag=True, help="Write plain lines, no live view.")
    return wait(plain(command))
