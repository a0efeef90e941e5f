"""`milepost ui`: the console, for a browser. Says the link; everything else is in `milepost.console`."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
import webbrowser
from contextlib import closing, suppress
from dataclasses import replace
from html import escape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from milepost.cli.opened import whoami
from milepost.cli.options import json_option
from milepost.cli.output import emit, note, say
from milepost.config import load_config
from milepost.errors import MisuseError
from milepost.stores.locate import VARIABLE, open_store

if TYPE_CHECKING:
    from milepost.console.server import Serving

NEEDED = ("jinja2", "starlette", "uvicorn")
"""What the `console` extra installs."""


@click.command("ui")
@click.option("--host", help="Where to listen; 127.0.0.1 when left out. Elsewhere people must prove who they are.")
@click.option("--port", type=click.IntRange(0, 65535), help="The port; 8765 when left out, 0 for any free one.")
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME", help="Another name this console answers to.")
@click.option("--open/--no-open", "is_opened", default=None, help="Open a browser; done on a desktop when left out.")
@click.option("--make-token", "named", metavar="NAME", help="Print a token for somebody and its line for tokens_file.")
@json_option
def command(
    host: str | None, port: int | None, hosts: tuple[str, ...], is_opened: bool | None, named: str | None, as_json: bool
) -> int:
    """Show the inbox, the runs and their health in a browser, and answer questions there.

    It needs the `console` extra and no network. The link it prints lets whoever opens it first in, once; answers are
    recorded under the account that started it, or under the names in `[console]` of milepost.toml.

    \b
    Example:
      milepost ui
      milepost ui --port 9000 --no-open
    """
    if named is not None:
        return _make_token(named, as_json)
    _refuse_missing()
    with closing(open_store(create=False)) as store:  # not `the_store`: nothing but the console may keep it open
        location = store.location
    serving = _serving(location, host, port, hosts)
    link = serving.link()
    _tell(serving, link, as_json)
    shown = _open(link) if _should_open(is_opened) else None
    try:
        serving.run()
    finally:
        if shown is not None:
            shown.unlink(missing_ok=True)
    return 0


def _serving(location: str, host: str | None, port: int | None, hosts: tuple[str, ...]) -> Serving:
    """Return a console that listens: as milepost.toml says, as the command line says otherwise."""
    from milepost.console.server import prepare

    config = load_config(Path.cwd(), Path(location))
    console = replace(
        config.console,
        host=config.console.host if host is None else host,
        port=config.console.port if port is None else port,
        allowed_hosts=(*config.console.allowed_hosts, *hosts),
    )
    serving = prepare(
        lambda: open_store(create=False, environ={VARIABLE: location}),
        console,
        owner=replace(whoami(), door="console"),
        folder=config.file.parent if config.file is not None else Path.cwd(),
        environ=os.environ,
        on_entered=lambda: _again(serving),
    )
    return serving


def _tell(serving: Serving, link: str, as_json: bool) -> None:
    if as_json:
        emit({"url": link, "store": serving.console.door.location, "port": serving.console.port}, one_line=True)
    else:
        say(f"Milepost console: {link}")
        note(f"It shows {serving.console.door.location}. Ctrl-C ends it.")
    sys.stdout.flush()


def _again(serving: Serving) -> None:
    """Say the next link once one was used."""
    note(f"Somebody came in by the link. For another browser: {serving.link()}")


def _should_open(is_opened: bool | None) -> bool:
    has_desktop = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or sys.platform == "darwin")
    return is_opened if is_opened is not None else has_desktop and sys.stdout.isatty()


def _open(link: str) -> Path:
    """Open a browser by a file only this account can read: a link on a command line is seen by every account."""
    handle, name = tempfile.mkstemp(prefix="milepost-", suffix=".html")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={escape(link)}"><title>Milepost</title>')
    with suppress(webbrowser.Error):
        webbrowser.open(Path(name).as_uri())
    return Path(name)


def _refuse_missing() -> None:
    try:
        for name in NEEDED:
            import_module(name)
    except ImportError as error:
        reason = f"`milepost ui` needs {error.name}, which is not installed"
        hint = "`pip install 'milepost[console]'` installs the console; then type it again."
        raise MisuseError(reason=reason, hint=hint) from None


def _make_token(name: str, as_json: bool) -> int:
    from milepost.console.people import token_digest

    token = secrets.token_urlsafe(32)
    line = f'"{name}" = {{ sha256 = "{token_digest(token)}", groups = [] }}'
    if as_json:
        emit({"name": name, "token": token, "line": line})
    else:
        say(token)
        note(f"Shown once. The line for the file that `tokens_file` in [console] names:\n{line}", lines=True)
    return 0
