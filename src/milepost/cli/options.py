"""The options and arguments that several commands share, with what a shell completes for them."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from milepost.records.outside import checked_text

F = TypeVar("F", bound=Callable[..., Any])


def _named(param: click.Parameter) -> str:
    return param.opts[0] if isinstance(param, click.Option) else param.human_readable_name.strip("[].")


class _Text(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.2
    """A text that is looked for, recorded or shown: refused here when it is no UTF-8."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text. Raises: BadName."""
        what = "argument" if param is None else _named(param)
        return checked_text(what, str(value))


class _Name(_Text):
    """The name of a run, a step or an effect, in the form in which names are recorded (Unicode NFC)."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name. Raises: BadName."""
        return unicodedata.normalize("NFC", super().convert(value, param, ctx))


class _Completed(_Name):
    """A name a shell can complete from what is in the store; without a store it completes nothing."""

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


TEXT = _Text()
NAME = _Name()
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
