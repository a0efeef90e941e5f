"""Where the outside world of this example is: addresses and limits from the environment, each with a default.

Addresses are no inputs of the task: a service that moved between a crash and its resume is still the same service.
Read once, when `reconcile` is imported; nothing here connects to anything.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

from invoices.extraction import ANTHROPIC_URL, OPENAI_URL
from invoices.imap import collect_imap
from invoices.mailbox import Collected, collect


@dataclass(frozen=True, slots=True)
class Settings:
    """`imap` is a URL such as `imaps://user@mail.example/INBOX`; empty: the mailbox is a folder."""

    accounting_url: str
    smtp_host: str
    smtp_port: int
    sent: Path
    orders: Path
    model: str
    settle: timedelta
    at_once: int
    imap: str
    reads: tuple[str, ...] = ()  # HOST:PORT of what is asked and never changed: the model, the mailbox

    @classmethod
    def read(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        """Read the INVOICES_* variables; `.env` files and command lines are somebody else's."""
        host, _, port = environ.get("INVOICES_SMTP", "127.0.0.1:25").rpartition(":")
        return cls(
            accounting_url=environ.get("INVOICES_ACCOUNTING_URL", "http://127.0.0.1:8080"),
            smtp_host=host,
            smtp_port=int(port),
            sent=Path(environ.get("INVOICES_SENT", "sent")),
            orders=Path(environ.get("INVOICES_ORDERS", "orders.sqlite")),
            model=environ.get("INVOICES_MODEL", "claude-sonnet-4-5"),
            settle=timedelta(seconds=float(environ.get("INVOICES_SETTLE_S", "30"))),
            at_once=int(environ.get("INVOICES_AT_ONCE", "4")),
            imap=environ.get("INVOICES_IMAP", ""),
            reads=tuple(_host_and_port(url) for url in _read_from(environ)),
        )

    def collect(self, mailbox: Path) -> list[Collected]:
        """Give the attachments of the configured IMAP folder, else of the folder `mailbox`; nothing is changed there.

        The password of an IMAP account is INVOICES_IMAP_PASSWORD, read now and kept nowhere.
        """
        if not self.imap:
            return collect(mailbox)
        url = urlsplit(self.imap)
        tls = url.scheme == "imaps"
        return collect_imap(
            url.hostname or "",
            url.port or (993 if tls else 143),
            unquote(url.username or ""),
            os.environ.get("INVOICES_IMAP_PASSWORD", ""),
            unquote(url.path.strip("/")) or "INBOX",
            tls=tls,
        )


def _read_from(environ: Mapping[str, str]) -> list[str]:
    models = [environ.get("ANTHROPIC_BASE_URL", ANTHROPIC_URL), environ.get("OPENAI_BASE_URL", OPENAI_URL)]
    return [*models, *filter(None, [environ.get("INVOICES_IMAP")])]


def _host_and_port(url: str) -> str:
    parts = urlsplit(url)
    port = parts.port or {"https": 443, "http": 80, "imaps": 993, "imap": 143}.get(parts.scheme, 443)
    return f"[{parts.hostname}]:{port}" if ":" in (parts.hostname or "") else f"{parts.hostname}:{port}"
