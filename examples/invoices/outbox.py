"""Outgoing mail: send one message over SMTP, and look for it in the provider's sent folder by its Message-ID.

The provider takes no idempotency key, so the Message-ID is what a resend is recognised by: derive it from the
key of the effect, never from chance. Called by the task's mail effect and its lookup.
"""

from __future__ import annotations

import smtplib
from email import message_from_bytes
from email.message import EmailMessage
from pathlib import Path

from invoices.faults import CannotLookUp, NotReached, RateLimited, TurnedDown, Unanswered

ANSWER_S_MAX = 30.0
HEADER_BYTES_MAX = 64 * 1024


def send(host: str, port: int, mail: EmailMessage, *, timeout_s: float = ANSWER_S_MAX) -> None:
    """Hand one message with a Message-ID over to the provider.

    Raises:
        NotReached, RateLimited, TurnedDown: the provider has not taken it.
        Unanswered: the provider may have taken it.
    """
    where = f"SMTP {host}:{port}"
    try:
        connection = smtplib.SMTP(host, port, timeout=timeout_s)
    except (OSError, smtplib.SMTPException) as error:
        raise NotReached(where=where, found=str(error) or type(error).__name__) from error
    with connection:
        _hand_over(connection, mail, where)
        # `with` says QUIT; after the 250 its outcome no longer matters, and smtplib ignores a lost connection there.


def _hand_over(connection: smtplib.SMTP, mail: EmailMessage, where: str) -> None:
    try:
        refused = connection.send_message(mail)
    except smtplib.SMTPRecipientsRefused as error:
        raise TurnedDown(where=where, status=550, said=f"no recipient taken: {error.recipients}") from error
    except smtplib.SMTPResponseException as error:
        said = error.smtp_error.decode("utf-8", "replace") if isinstance(error.smtp_error, bytes) else ""
        if 400 <= error.smtp_code < 500:
            raise RateLimited(where=where, retry_after=None) from error
        raise TurnedDown(where=where, status=error.smtp_code, said=said) from error
    except (OSError, smtplib.SMTPException) as error:
        raise Unanswered(where=where, found=str(error) or type(error).__name__) from error
    if refused:
        raise TurnedDown(where=where, status=550, said=f"some recipients were not taken: {sorted(refused)}")


def find_in_sent(sent: Path, message_id: str) -> Path | None:
    """Find the first message with this Message-ID in the provider's Maildir; None when there is none.

    Raises:
        CannotLookUp: the folder is not there or cannot be read.
    """
    wanted = message_id.strip()
    try:
        paths = sorted(path for part in ("new", "cur") for path in (sent / part).iterdir())
        return next((path for path in paths if _message_id(path) == wanted), None)
    except OSError as error:
        raise CannotLookUp(where=str(sent), found=str(error)) from error


def _message_id(path: Path) -> str:
    with open(path, "rb") as file:
        head = file.read(HEADER_BYTES_MAX)
    return str(message_from_bytes(head).get("Message-ID", "")).strip()
