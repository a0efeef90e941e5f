"""The files of a month that are no invoices: damaged, hostile, locked, or something else altogether.

Each has a name, how it is made from a good invoice, and the reason that reading it must give. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from invoices.generate.cii import cii_bytes
from invoices.generate.pdf import facturx_bytes, pdf_bytes
from invoices.generate.ubl import ubl_bytes
from invoices.mailbox import SkippedCode
from invoices.model import Invoice, ReasonCode

DECLARATION = b'<?xml version="1.0" encoding="UTF-8"?>\n'
XXE = b'<!DOCTYPE Invoice [<!ENTITY taken SYSTEM "file:///etc/passwd">]>\n'
LAUGHS = (
    b'<!DOCTYPE Invoice [<!ENTITY l0 "ha">'
    + b"".join(b'<!ENTITY l%d "%s">' % (n, b"&l%d;" % (n - 1) * 10) for n in range(1, 10))
    + b"]>\n"
)
PAGE = b"<!doctype html><html><body><h1>Your invoice is ready</h1><a href='https://portal.example/'>Open</a></body></html>\n"


@dataclass(frozen=True)
class Damage:
    """`attached` gives name, subtype and content for a good invoice; None is a mail without attachment."""

    name: str
    expected: ReasonCode | SkippedCode
    attached: Callable[[Invoice], tuple[str, str, bytes]] | None


def _without_totals(invoice: Invoice) -> bytes:
    whole = ubl_bytes(invoice)
    start, end = whole.index(b"  <cac:LegalMonetaryTotal>"), whole.index(b"</cac:LegalMonetaryTotal>\n")
    return whole[:start] + whole[end + len(b"</cac:LegalMonetaryTotal>\n") :]


def _with_doctype(invoice: Invoice, doctype: bytes, entity: bytes) -> bytes:
    document = ubl_bytes(invoice)
    number_at = document.index(b"<cbc:ID>") + len(b"<cbc:ID>")
    poisoned = document[:number_at] + entity + document[number_at:]
    return poisoned.replace(DECLARATION, DECLARATION + doctype, 1)


def _as(suffix: str, content: Callable[[Invoice], bytes]) -> Callable[[Invoice], tuple[str, str, bytes]]:
    return lambda good: (f"{good.number}.{suffix}", suffix, content(good))


DAMAGES = (
    Damage("truncated_xml", ReasonCode.DAMAGED, _as("xml", lambda good: cii_bytes(good)[:1800])),
    Damage("truncated_pdf", ReasonCode.DAMAGED, _as("pdf", lambda good: facturx_bytes(good)[:900])),
    Damage("xxe", ReasonCode.HOSTILE, _as("xml", lambda good: _with_doctype(good, XXE, b"&taken;"))),
    Damage("billion_laughs", ReasonCode.HOSTILE, _as("xml", lambda good: _with_doctype(good, LAUGHS, b"&l9;"))),
    Damage("locked_pdf", ReasonCode.ENCRYPTED, _as("pdf", lambda good: pdf_bytes(good, password="not told"))),
    Damage("without_totals", ReasonCode.INCOMPLETE, _as("xml", _without_totals)),
    Damage("web_page", ReasonCode.DAMAGED, _as("xml", lambda _good: PAGE)),
    Damage("empty_file", SkippedCode.EMPTY_ATTACHMENT, _as("xml", lambda _good: b"")),
    Damage("winmail", SkippedCode.WINMAIL, lambda _good: ("winmail.dat", "ms-tnef", b"\x78\x9f\x3e\x22" + bytes(60))),
    Damage("no_attachment", SkippedCode.NO_ATTACHMENT, None),
)
