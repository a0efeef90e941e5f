"""What the reconciliation talks about: an invoice and its lines, or the reason why a file is none.

Plain frozen data, so that each value can be a step's output and comes back equal from its artifact. Money is
`Decimal` exactly as the document wrote it; credit notes keep the document's signs. Nothing here reads a file
(`parsing` does) or compares with orders (the task does).
"""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum

ZERO = Decimal(0)


class InvoiceKind(StrEnum):
    """What the supplier wants: money, or to give some back."""

    INVOICE = "invoice"
    CREDIT_NOTE = "credit_note"


class InvoiceFormat(StrEnum):
    """Where the values came from; `MODEL` marks the ones that a model read from a page."""

    UBL = "ubl"
    CII = "cii"
    FACTURX = "facturx"
    MODEL = "model"


class ReasonCode(StrEnum):
    """Why a file is no invoice for us. Stable: reports and tests group by it."""

    EMPTY = "empty"
    TOO_LARGE = "too_large"
    UNKNOWN_FORMAT = "unknown_format"
    DAMAGED = "damaged"
    HOSTILE = "hostile"
    ENCRYPTED = "encrypted"
    NO_XML = "no_xml"
    INCOMPLETE = "incomplete"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Line:
    """One position of an invoice.

    `item` is the seller's item id, else the buyer's, else the standard one, else the name. `unit_price` is for one
    unit, whatever quantity the document priced. `net` is after the line's own allowances and charges. `order_ref`
    is the order *line* this position names (EN 16931 BT-132), if any; the order itself is `Invoice.order_ref`.
    """

    number: str
    item: str
    description: str
    quantity: Decimal
    unit: str
    unit_price: Decimal
    net: Decimal
    order_ref: str | None = None


@dataclass(frozen=True, slots=True)
class Invoice:
    """One invoice or credit note, with the totals that its document states; they are not recomputed here.

    In a document that adds up: `net_total` = the lines' nets - `allowances` + `charges`; `gross_total` =
    `net_total` + `tax_total`; `payable` = `gross_total` - `prepaid` + `rounding`.
    """

    number: str
    kind: InvoiceKind
    supplier: str
    supplier_id: str
    issued: date
    currency: str
    order_ref: str | None
    lines: tuple[Line, ...]
    net_total: Decimal
    tax_total: Decimal
    gross_total: Decimal
    payable: Decimal
    source: str
    format: InvoiceFormat
    allowances: Decimal = ZERO
    charges: Decimal = ZERO
    prepaid: Decimal = ZERO
    rounding: Decimal = ZERO


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that gives no invoice; `reason` is one plain sentence: what was expected, what was found."""

    source: str
    reason_code: ReasonCode
    reason: str


@dataclass(frozen=True, slots=True)
class NeedsModel:
    """The text of a PDF without embedded XML: a model has to read it. The text is data, never instructions."""

    source: str
    text: str
