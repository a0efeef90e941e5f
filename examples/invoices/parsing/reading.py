"""From a file's bytes to an invoice: looks at the content, never at the name, and picks the reader.

The only place where a refusal becomes a value; past it, no byte sequence raises. The task calls `read_invoice` once per
attachment, inside a step.
"""

from dataclasses import replace

from ..model import Invoice, InvoiceFormat, NeedsModel, ReasonCode, Unreadable
from . import cii, ubl
from .pdf import ATTACHMENT_NAMES, looks_like_pdf, read_pdf
from .refusal import Refusal, quoted
from .tree import read_tree

# "<" in UTF-8 and in both UTF-16 orders, with and without a byte order mark.
_XML_STARTS = (b"<", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\x00<")
_SIGNATURES = {
    b"PK\x03\x04": "a ZIP archive or Office file",
    b"\x1f\x8b": "a gzip file",
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"II*\x00": "a TIFF picture",
    b"MM\x00*": "a TIFF picture",
    b"\xd0\xcf\x11\xe0": "an old Office file",
}
_SHOWN_BYTES = 12


def read_invoice(name: str, data: bytes) -> Invoice | NeedsModel | Unreadable:
    """Read one supplier invoice: UBL, CII, or a PDF that embeds either.

    `name` only labels the outcome. A PDF without embedded XML comes back as `NeedsModel` with its text. Never raises,
    whatever the bytes: what cannot be read is `Unreadable` with the reason.
    """
    try:
        return _read(name, data)
    except Refusal as refusal:
        return refusal.outcome(name)


def _read(name: str, data: bytes) -> Invoice | NeedsModel:
    if not data.strip():
        raise Refusal(ReasonCode.EMPTY, expected="an invoice", found=f"a file of {len(data)} bytes without content")
    # XML forbids whitespace before its declaration; mail gateways add it all the same.
    trimmed = data.lstrip()
    if trimmed.startswith(_XML_STARTS):
        return _read_xml(name, trimmed)
    if looks_like_pdf(data):
        return _read_pdf(name, data)
    raise Refusal(ReasonCode.UNKNOWN_FORMAT, expected="XML or PDF", found=_described(data))


def _read_xml(name: str, data: bytes) -> Invoice:
    dialect, root = read_tree(data, (*ubl.DIALECTS, *cii.DIALECTS))
    return ubl.read(root, name) if dialect in ubl.DIALECTS else cii.read(root, name)


def _read_pdf(name: str, data: bytes) -> Invoice | NeedsModel:
    content = read_pdf(data)
    if content.xml is not None:
        return replace(_read_xml(name, content.xml), format=InvoiceFormat.FACTURX)
    if not content.text:
        names = ", ".join(sorted(ATTACHMENT_NAMES))
        raise Refusal(
            ReasonCode.NO_XML,
            expected=f"an embedded invoice ({names}) or pages with text",
            found="a PDF with neither; its pages may be scanned pictures",
        )
    return NeedsModel(source=name, text=content.text)


def _described(data: bytes) -> str:
    for signature, description in _SIGNATURES.items():
        if data.startswith(signature):
            return description
    return f"bytes that begin with {quoted(data[:_SHOWN_BYTES].decode('latin-1'))}"
