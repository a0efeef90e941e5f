"""Listens and serves: one console on one address until a signal. Prints nothing itself; its caller says the link.

What may be let in from elsewhere is decided here, before anything listens. Called by `milepost ui`.
"""

from __future__ import annotations

import os
import re
import socket
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from milepost.config import ConsoleConfig
from milepost.console.app import build
from milepost.console.changes import Changes
from milepost.console.children import Children
from milepost.console.hosts import own_names
from milepost.console.opening import OpenStore
from milepost.console.peer import is_loopback
from milepost.console.people import People, Proxy
from milepost.console.wiring import Console
from milepost.errors import BadConfig, ConsoleRefused
from milepost.records.identity import Identity
from milepost.regular import read_regular
from milepost.stores.contract import Store

GRACE_S = 2
"""Seconds that open pages get to end when the console does."""
CONNECTIONS_MAX = 200


class _Server(uvicorn.Server):
    """Lets live pages go as soon as it is to end: it would wait for them."""

    def __init__(self, settings: uvicorn.Config, changes: Changes) -> None:
        super().__init__(settings)
        self._changes = changes

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._changes.end()
        super().handle_exit(sig, frame)


@dataclass(slots=True)
class Serving:
    """A console that listens already and serves once `run` is called."""

    console: Console
    listening: socket.socket
    link_host: str
    _server: uvicorn.Server = field(init=False)

    def __post_init__(self) -> None:
        settings = uvicorn.Config(
            build(self.console),
            log_level="warning",
            access_log=False,  # a link's token must not stand in a file
            server_header=False,
            proxy_headers=False,  # the gate judges what a proxy says
            ws="none",
            lifespan="on",
            limit_concurrency=CONNECTIONS_MAX,
            timeout_graceful_shutdown=GRACE_S,
        )
        self._server = _Server(settings, self.console.changes)

    def link(self) -> str:
        """Return a link that lets its reader in: with a token that works once, for consoles that give out links."""
        base = self.console.url.rstrip("/") or f"http://{self.link_host}:{self.console.port}"
        if self.console.people.owner is None:
            return f"{base}/"
        return f"{base}/?token={self.console.people.new_link_token()}"

    def run(self) -> None:
        """Serve until SIGINT or SIGTERM."""
        self._server.run(sockets=[self.listening])


def prepare(
    open_store: Callable[[], Store],
    config: ConsoleConfig,
    *,
    owner: Identity,
    folder: Path,
    environ: Mapping[str, str],
    on_entered: Callable[[], None] = lambda: None,
) -> Serving:
    """Listen as configured. `folder` is where relative names in the file start.

    Raises: ConsoleRefused when others could come in unproven or the address is taken, BadConfig.
    """
    door = OpenStore(open_store)
    people = _people(config, owner, folder, environ)
    listening = _listen(config.host, config.port)
    port = listening.getsockname()[1]
    console = Console(
        door=door,
        people=people,
        hosts=own_names(port, [*config.allowed_hosts, *_host_of(config.url)]),
        children=Children(door.location),
        changes=Changes(door.look),
        port=port,
        url=config.url,
        on_entered=on_entered,
        owners_only=people.owner is not None and not people.named and not config.url and is_loopback(config.host),
    )
    return Serving(console, listening, "127.0.0.1" if config.host in ("", "0.0.0.0", "::") else _bracketed(config.host))


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _host_of(url: str) -> list[str]:
    return [url.split("://", 1)[-1].split("/", 1)[0]] if url else []


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named, else asyncio leaves Nagle on
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(CONNECTIONS_MAX)  # from here on a browser is heard, if not answered yet
    except OSError as error:
        listening.close()
        raise ConsoleRefused(
            where=f"{host}:{port}", reason=f"it cannot listen there: {error.strerror or error}"
        ) from error
    listening.set_inheritable(False)
    return listening


# ── who may come in ──


def _people(config: ConsoleConfig, owner: Identity, folder: Path, environ: Mapping[str, str]) -> People:
    where = f"{config.host}:{config.port}"
    named = read_tokens(folder / config.tokens_file) if config.tokens_file else {}
    proxy = _proxy(config, environ, where)
    if not is_loopback(config.host) and not named and proxy is None:
        raise ConsoleRefused(where=where, reason="others can reach it, and nothing would prove who they are")
    may_link = proxy is None and is_loopback(config.host)
    return People(owner=owner if may_link else None, named=named, proxy=proxy)


def _proxy(config: ConsoleConfig, environ: Mapping[str, str], where: str) -> Proxy | None:
    if not config.identity_header:
        return None
    secret = environ.get(config.proxy_secret_env, "") if config.proxy_secret_env else ""
    if config.proxy_secret_env and len(secret) < 16:
        reason = f"{config.proxy_secret_env} should hold the proxy's secret, of at least 16 characters, and does not"
        raise ConsoleRefused(where=where, reason=reason)
    if not secret and not config.trusted_proxies:
        reason = "identity_header is set, but neither proxy_secret_env nor trusted_proxies proves who sets that header"
        raise ConsoleRefused(where=where, reason=reason)
    if not secret and any(map(is_loopback, config.trusted_proxies)):
        reason = "every account of this machine could set identity_header; a proxy on it needs proxy_secret_env"
        raise ConsoleRefused(where=where, reason=reason)
    return Proxy(config.identity_header, config.groups_header, secret, frozenset(config.trusted_proxies))


def read_tokens(file: Path) -> dict[str, Identity]:
    """Read a tokens file: TOML, for each person `sha256` and, if there are, `groups`.

    Raises: BadConfig, also of a file that names nobody: somebody meant to have people proven by it.
    """
    try:
        data = tomllib.loads(read_regular(file).decode("utf-8"))
    except (OSError, ValueError) as error:
        raise BadConfig(
            file=file, key="the file", expected="a readable TOML file of tokens", found=str(error)
        ) from error
    if os.name == "posix" and file.stat().st_mode & 0o022:
        raise BadConfig(file=file, key="the file", expected="one that only its owner may write", found="others may")
    if not data:
        raise BadConfig(file=file, key="the file", expected="at least one person's token", found="none")
    return dict(_token(file, name, entry) for name, entry in data.items())


def _token(file: Path, name: str, entry: Any) -> tuple[str, Identity]:
    sha256 = entry.get("sha256") if isinstance(entry, dict) else entry
    groups = entry.get("groups", []) if isinstance(entry, dict) else []
    if not isinstance(sha256, str) or re.fullmatch("[0-9a-f]{64}", sha256) is None:
        raise BadConfig(
            file=file, key=name, expected="the SHA-256 of a token, 64 hexadecimal digits", found="something else"
        )
    if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
        raise BadConfig(file=file, key=f"{name}.groups", expected="a list of texts", found="something else")
    return sha256, Identity(name, tuple(groups), "console")
