"""Which account of this machine is at the other end of a loopback connection, as Linux tells it.

A token keeps others out already; this keeps out one who got hold of it, too. Where it cannot be told, all may pass.
"""

from __future__ import annotations

import ipaddress
import os
import sys
from pathlib import Path

REMEMBERED_S = 5.0
"""Seconds for which a connection is not looked up again."""
REMEMBERED_MAX = 1000
TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


def is_own_account(client: tuple[str, int] | None, server: tuple[str, int | None] | None) -> bool:
    """Say whether a connection comes from this process's account or root; True where it cannot be told."""
    account = account_of(client, server)
    return account is None or account in (os.geteuid(), 0)


class OwnAccount:
    """Remembers for a moment which connections were this account's: the kernel's table may be long."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], float] = {}

    def is_at(self, client: tuple[str, int] | None, server: tuple[str, int | None] | None, now_s: float) -> bool:
        """Say whether a connection comes from this process's account or root; True where it cannot be told."""
        if client is not None and now_s - self._seen.get(client, -REMEMBERED_S) < REMEMBERED_S:
            return True
        if not is_own_account(client, server):
            return False
        if client is not None:
            if len(self._seen) >= REMEMBERED_MAX:
                self._seen.clear()
            self._seen[client] = now_s
        return True


def account_of(client: tuple[str, int] | None, server: tuple[str, int | None] | None) -> int | None:
    """Return the user id that owns the client's end of a connection, None where it cannot be told."""
    if client is None or server is None or server[1] is None or not is_loopback(client[0]):
        return None
    near, far = f":{client[1]:04X}", f":{server[1]:04X}"
    for table in TABLES:
        try:
            lines = table.read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if fields[1].endswith(near) and fields[2].endswith(far) and _address(fields[1]) == client[0]:
                return int(fields[7])
    return None


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _address(field: str) -> str:
    """Return the address in a field of the table: hexadecimal words in this machine's byte order."""
    words = field.partition(":")[0]
    raw = b"".join(int(words[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(words), 8))
    return str(ipaddress.ip_address(raw))
