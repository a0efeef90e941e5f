"""The mailbox over IMAP: the same attachments as from a folder, read without marking anything as read."""

from __future__ import annotations

import imaplib
import re
from collections.abc import Iterator
from contextlib import contextmanager

from invoices.faults import NotReached, TurnedDown, Unanswered
from invoices.mailbox import Collected, RawMail, Skipped, collect_mails, mail_over_bound, unread

ANSWER_S_MAX = 60.0


def collect_imap(
    host: str, port: int, user: str, password: str, folder: str = "INBOX", *, tls: bool = True
) -> list[Collected]:
    """Give the attachments of an IMAP folder, in order of UID; the folder is opened read-only.

    Raises:
        NotReached: no connection.
        TurnedDown: the login or the folder was refused.
        Unanswered: the connection broke; nothing was changed at the server.
    """
    where = f"IMAP {host}:{port}"
    with _connected(host, port, tls, where) as connection:
        try:
            connection.login(user, password)
            status, said = connection.select(_quoted(folder), readonly=True)
            if status != "OK":
                raise TurnedDown(where=where, status=0, said=f"folder {folder!r}: {said!r}")
            return collect_mails(_mails(connection))
        except (imaplib.IMAP4.abort, OSError) as error:
            raise Unanswered(where=where, found=str(error)) from error
        except imaplib.IMAP4.error as error:
            raise TurnedDown(where=where, status=0, said=str(error)) from error


@contextmanager
def _connected(host: str, port: int, tls: bool, where: str) -> Iterator[imaplib.IMAP4]:
    connect = imaplib.IMAP4_SSL if tls else imaplib.IMAP4
    try:
        connection = connect(host, port, timeout=ANSWER_S_MAX)
    except (OSError, imaplib.IMAP4.error) as error:
        raise NotReached(where=where, found=str(error) or type(error).__name__) from error
    with connection:
        yield connection


def _mails(connection: imaplib.IMAP4) -> Iterator[RawMail | Skipped]:
    _status, found = connection.uid("SEARCH", "ALL")
    for uid in sorted(int(number) for number in (found[0] or b"").split()):
        yield _mail(connection, uid)


def _mail(connection: imaplib.IMAP4, uid: int) -> RawMail | Skipped:
    name = f"uid-{uid}"
    _status, sizes = connection.uid("FETCH", str(uid), "(RFC822.SIZE)")
    size = re.search(rb"RFC822\.SIZE (\d+)", sizes[0] or b"") if sizes else None
    # Asked first: a mail over the bound must not be transferred to learn that it is.
    over = mail_over_bound(name, int(size[1])) if size else None
    if over:
        return over
    _status, parts = connection.uid("FETCH", str(uid), "(BODY.PEEK[])")
    content = next((part[1] for part in parts if isinstance(part, tuple)), None)
    if content is None:
        return unread(name, "expected a mail, found that it is gone from the server")
    return RawMail(name, content)


def _quoted(folder: str) -> str:
    escaped = folder.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
