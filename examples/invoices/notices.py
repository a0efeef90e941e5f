"""The mail that tells a supplier what did not fit: whom to write to, and what.

Pure but for the date in a mail's head. A sender is written to only if an invoice of theirs could be read: nobody can
make us write to strangers by sending rubbish in their name. Called by the task; `outbox` does the sending.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import format_datetime, localtime

from invoices.matching import Discrepancy, Reading
from invoices.model import Invoice

OUR_ADDRESS = "invoices@northgate-parts.example"
OUR_DOMAIN = "northgate-parts.example"
# Narrower than the RFCs: an address is a name in our journal and a header in our mail.
ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}@[A-Za-z0-9][A-Za-z0-9.-]{0,99}")
SHOWN_CHARACTERS_MAX = 200
WORDS = """\
Dear supplier,

your invoices of {month} and our purchase orders differ:

{points}

Please send a correction, or tell us what we missed. Until then these invoices are not paid.

Northgate Parts Distribution Ltd, accounting
"""


@dataclass(frozen=True, slots=True)
class Notice:
    """One mail to one supplier; `points` has one plain line for each discrepancy."""

    to: str
    month: str
    points: list[str]


def notices_of(month: str, found: Iterable[Discrepancy], readings: Sequence[Reading]) -> list[Notice]:
    """Write one notice for each supplier with discrepancies, in order of address."""
    known = {reading.sender for reading in readings if isinstance(reading.found, Invoice)}
    points: dict[str, list[str]] = {}
    for discrepancy in found:
        if discrepancy.sender in known and ADDRESS.fullmatch(discrepancy.sender):
            points.setdefault(discrepancy.sender, []).append(_point(discrepancy))
    return [Notice(to, month, points[to]) for to in sorted(points)]


def mail_of(notice: Notice, message_id: str) -> EmailMessage:
    """Give the mail of a notice; only its Date differs from one call to the next."""
    mail = EmailMessage()
    mail["From"] = OUR_ADDRESS
    mail["To"] = notice.to
    mail["Subject"] = f"Your invoices of {notice.month}: {len(notice.points)} to be corrected"
    mail["Date"] = format_datetime(localtime())
    mail["Message-ID"] = message_id
    mail.set_content(WORDS.format(month=notice.month, points="\n".join(f"- {point}" for point in notice.points)))
    return mail


def _point(discrepancy: Discrepancy) -> str:
    text = f"{discrepancy.subject}: {discrepancy.detail}"
    # One line each, whatever a document put into its own number.
    return "".join(character if character.isprintable() else " " for character in text)[:SHOWN_CHARACTERS_MAX]
