"""The names a console answers to: what comes by another one is DNS rebinding or a mistake. Pure. Asked by `gate`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Hosts:
    """The names this console answers to, as a browser writes them in Host and Origin; without a port: any port."""

    names: frozenset[str]

    def know(self, host: str) -> bool:
        """Say whether a Host header names this console. Anything else is DNS rebinding or a mistake."""
        host = host.lower()
        return host in self.names or _without_port(host) in self.names

    def is_own_origin(self, origin: str, host: str) -> bool:
        """Say whether a form was sent by one of our own pages."""
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower() and self.know(parts.netloc)


def own_names(port: int, allowed: Iterable[str]) -> Hosts:
    """Return the hosts of a console: this machine's own names, and those a person allows."""
    own = (f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))
    return Hosts(frozenset([*own, *map(str.lower, allowed)]))


def _without_port(host: str) -> str:
    head, colon, port = host.rpartition(":")
    return head if colon and port.isdigit() else host
