"""`milepost demo`: the month of invoices, killed five times and resumed. Becomes the example's own program."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from pathlib import Path

import click

import milepost
from milepost.cli.options import json_option
from milepost.errors import MisuseError

NEEDED = ("aiosmtpd", "httpx2", "lxml", "pypdf", "reportlab")
"""What the `examples` extra installs and the demo imports."""
PROGRAM = "invoices.demo"


@click.command("demo", context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@json_option
def command(arguments: tuple[str, ...], as_json: bool) -> int:
    """Watch a month of invoices being reconciled, killed five times with SIGKILL, and resumed.

    It needs the `examples` extra, no account and no network, and takes less than two minutes. ARGUMENTS go to the
    demo's own program.

    \b
    Example:
      milepost demo
    """
    folder = examples_folder()
    _refuse_missing()
    given = [*arguments, *(["--json"] if as_json else [])]
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, "-m", PROGRAM, *given], environ)


def examples_folder() -> Path:
    """Return where the examples are: beside the source, else inside the wheel. Raises: MisuseError."""
    package = Path(milepost.__file__).parent
    for folder in (package.parents[1] / "examples", package / "examples"):
        if (folder / "invoices" / "demo" / "__main__.py").is_file():
            return folder
    raise MisuseError(reason="this installation of Milepost carries no examples; install it from its wheel or source")


def _refuse_missing() -> None:
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        reason = f"the demo needs {', '.join(missing)}"
        raise MisuseError(reason=reason, hint=f"{_how_to_install()}; then type it again.")


def _how_to_install() -> str:
    """Say how the extra is installed: from the source this runs from, else from a clone of it."""
    source = Path(milepost.__file__).parents[2]
    if (source / "pyproject.toml").is_file():
        return f"`pip install {shlex.quote(f'{source}[examples]')}`"
    return "In a clone of Milepost's source `pip install '.[examples]'`"
