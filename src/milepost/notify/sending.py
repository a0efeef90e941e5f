"""Sends one message through one channel: with the apprise library, or with a local command. Writes nothing.

What goes wrong comes back as a sentence without the channel's secrets; nothing here retries.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
from typing import Any
from urllib.parse import unquote

from milepost.errors import ExtraMissing
from milepost.notify.channels import Channel
from milepost.notify.message import Message
from milepost.records.shown import inert
from milepost.runtime import children

_PIECES = re.compile(r"[:/?#\[\]@!$&'()*+,;=\s]+")
_PIECE_LENGTH_MIN = 4
"""Shorter parts of a url are no secrets; hidden, they would make every error unreadable."""
_TELLING = frozenset(["http", "https", "mailto", "mailtos", "json", "jsons", "from", "user", "localhost", "127.0.0.1"])


def send(channel: Channel, message: Message, timeout_s: float) -> str:
    """Send a message and return why that failed, "" when it did not. Raises: ExtraMissing without the library."""
    if channel.trouble:
        return channel.trouble
    if channel.command:
        return _run(channel, message, timeout_s)
    return _through_apprise(channel, message, timeout_s)


def _through_apprise(channel: Channel, message: Message, timeout_s: float) -> str:
    apprise = _imported()
    service = apprise.Apprise()
    if not service.add(channel.url):
        return "apprise does not understand this url"
    result = service.notify(
        message.text,
        title=message.title,
        body_format=apprise.NotifyFormat.TEXT,
        timeout=timeout_s,
        log_callback=_nothing,
    )
    if result:
        return ""
    said = [entry.message for entry in result.logs() if entry.level in ("WARNING", "ERROR", "CRITICAL")]
    return without_secrets("; ".join(said), channel.url) or f"apprise says {result.status.name.lower()}, and not why"


def _nothing(entry: Any, service: Any) -> None:
    """Hear what apprise says, so that it is kept with the result; it is told from there."""


def _imported() -> Any:
    try:
        import apprise
    except ImportError as error:
        raise ExtraMissing(what="notifications by mail, chat and webhooks", extra="notify") from error
    return apprise


def _run(channel: Channel, message: Message, timeout_s: float) -> str:
    """Run the local command with the question as JSON on its stdin; its group ends with its time.

    Whoever wrote the file that names it, it tells people and is none: what it starts cannot answer.
    """
    children.mark()
    run_id = message.data.get("run_id", "")
    try:
        process = subprocess.Popen(
            channel.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=channel.folder,
            env={**os.environ, **children.nobody_answers(run_id)},
            process_group=0,
        )
    except (OSError, ValueError) as error:
        return f"the command cannot be started: {inert(error)}"
    with process:
        try:
            _, said = process.communicate(json.dumps(message.data).encode(), timeout_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            return f"the command did not end within {timeout_s:g} s"
    last = inert(said.decode("utf-8", "replace").strip().rpartition("\n")[2])
    ended = f"the command ended with status {process.returncode}" + (f": {last}" if last else "")
    return "" if process.returncode == 0 else ended


def without_secrets(text: str, url: str) -> str:
    """Return what a service said as one inert line in which no part of its url stands."""
    pieces = {spelling for piece in _PIECES.split(url.partition("://")[2]) for spelling in (piece, unquote(piece))}
    for piece in sorted(pieces - _TELLING, key=len, reverse=True):
        if len(piece) >= _PIECE_LENGTH_MIN:
            text = text.replace(piece, "…")
    return inert(" ".join(text.split()))
