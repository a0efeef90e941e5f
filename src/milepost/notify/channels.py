"""Where notifications go: the urls and the command of `[notify]`, each under a name that tells no secret. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from milepost.config import NotifyConfig
from milepost.notify.message import Reason

FROM_ENVIRONMENT = "env:"
"""Begins a url that is read from an environment variable."""
COMMAND = "command"


@dataclass(frozen=True, slots=True)
class Channel:
    """One way to reach people: a url for apprise, or the local command. `name` is what is recorded and shown."""

    name: str
    url: str = ""
    command: tuple[str, ...] = ()
    folder: Path | None = None  # where the command runs: that of the file which names it
    trouble: str = ""  # why nothing can be sent through it


def channels(config: NotifyConfig, environ: Mapping[str, str], folder: Path | None) -> dict[Reason, list[Channel]]:
    """Return for each reason the channels it goes through. An escalation goes to `escalate_to` only."""
    usual = [_of_url(url, environ) for url in config.urls]
    if config.command:
        usual.append(Channel(COMMAND, command=config.command, folder=folder))
    above = [_of_url(url, environ) for url in config.escalate_to]
    return {Reason.ASKED: usual, Reason.REMINDER: usual, Reason.ESCALATION: above or usual}


def _of_url(given: str, environ: Mapping[str, str]) -> Channel:
    if not given.startswith(FROM_ENVIRONMENT):
        scheme = given.partition("://")[0] if "://" in given else "url"
        return Channel(f"{scheme[:20]}-{sha256(given.encode()).hexdigest()[:6]}", url=given)
    variable = given.removeprefix(FROM_ENVIRONMENT)
    url = environ.get(variable, "")
    return Channel(given, url=url, trouble="" if url else f"the environment variable {variable} is not set")
