"""Writes the mails of a month: sender, date, a few words, one attached file.

Pure; the same call gives the same bytes.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.utils import format_datetime

from invoices.generate.catalogue import BUYER_ADDRESS, Supplier
from invoices.generate.plan import MONTH, YEAR

WORDS = """\
Dear Sir or Madam,

please find attached our {what}.

Kind regards
{supplier}
"""
HTML_EVERY = 7


def message_id(supplier: Supplier, index: int) -> str:
    """Give the Message-ID of the month's n-th mail."""
    return f"<{YEAR}-{MONTH:02d}.{index:04d}@{supplier.short.lower()}.example>"


def mail_bytes(supplier: Supplier, index: int, day: int, what: str, attached: tuple[str, str, bytes] | None) -> bytes:
    """Give the month's n-th mail; `attached` is name, subtype of `application/`, and content."""
    mail = EmailMessage()
    mail["From"] = supplier.address
    mail["To"] = BUYER_ADDRESS
    mail["Subject"] = what
    mail["Date"] = format_datetime(datetime(YEAR, MONTH, day, 6, tzinfo=UTC) + timedelta(minutes=index))
    mail["Message-ID"] = message_id(supplier, index)
    text = WORDS.format(what=what, supplier=supplier.name)
    mail.set_content(text, cte="quoted-printable")
    if index % HTML_EVERY == 0:
        mail.add_alternative(f"<p>{text}</p>", subtype="html", cte="quoted-printable")
    if attached is not None:
        name, subtype, content = attached
        mail.add_attachment(content, maintype="application", subtype=subtype, filename=name)
    _set_boundaries(mail, index)
    return mail.as_bytes()


def _set_boundaries(mail: EmailMessage, index: int) -> None:
    # The library would draw them by chance.
    for depth, part in enumerate(mail.walk()):
        if part.is_multipart():
            part.set_boundary(f"=_{YEAR}{MONTH:02d}_{index:04d}_{depth}")
