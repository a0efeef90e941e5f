"""Compares what suppliers bill with what was ordered, and names each way in which the two do not fit.

Pure: it gets the month's readings and the orders, and gives discrepancies. It reads no file, asks no model and sends
nothing. Called by the task's matching step; the kinds are those that `generate` plants.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from hashlib import sha256

from invoices.mailbox import Attachment, Skipped
from invoices.model import Invoice, InvoiceKind, Line, Unreadable
from invoices.orders import Order, OrderLine, OrderStatus

DETAIL_CHARACTERS_MAX = 500
ID_CHARACTERS_MAX = 60


class Kind(StrEnum):
    """What does not fit. Stable: the accounting queue and reports group by it."""

    WRONG_PRICE = "wrong_price"
    WRONG_QUANTITY = "wrong_quantity"
    UNKNOWN_ORDER = "unknown_order"
    NO_ORDER = "no_order"
    WRONG_CURRENCY = "wrong_currency"
    DUPLICATE_INVOICE = "duplicate_invoice"
    TOTAL_MISMATCH = "total_mismatch"
    MISSING_LINE = "missing_line"
    EXTRA_LINE = "extra_line"
    CLOSED_ORDER = "closed_order"
    OTHER_SUPPLIER = "other_supplier"
    CREDIT_NOTE_WITHOUT_INVOICE = "credit_note_without_invoice"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Reading:
    """What one attachment, or one mail that has none to use, turned out to be."""

    mail_id: str
    sender: str
    name: str
    found: Invoice | Unreadable | Skipped


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """One thing an accountant has to look at. `id` is unique in a month and the same whenever it is found again."""

    id: str
    kind: Kind
    subject: str
    supplier: str
    sender: str
    detail: str


def label_of(origin: Attachment | Reading) -> str:
    """Name a file of a mail: unique in its mailbox, and safe in names and keys although strangers chose its parts."""
    exact = sha256(f"{origin.mail_id}\n{origin.name}".encode("utf-8", "replace")).hexdigest()[:8]
    return f"{_plain(origin.name)} {exact}"


def discrepancies(readings: Sequence[Reading], orders: Mapping[str, Order]) -> list[Discrepancy]:
    """Find everything that does not fit, in the order of the mailbox; at most one of a kind for each file."""
    month = _Month(readings, orders)
    return [
        _discrepancy(reading, kind, details)
        for reading in readings
        for kind, details in _grouped(month.judge(reading)).items()
    ]


# ── judging ─────────────────────────────────────────────────────────────────────────────────────────

Fault = tuple[Kind, str]


class _Month:
    """The orders, and which of them the month's invoices bill; sees the readings in the mailbox's order."""

    def __init__(self, readings: Sequence[Reading], orders: Mapping[str, Order]) -> None:
        invoices = [reading.found for reading in readings if isinstance(reading.found, Invoice)]
        self._orders = orders
        self._billed = {invoice.order_ref for invoice in invoices if invoice.kind is InvoiceKind.INVOICE}
        self._seen: set[tuple[str, str]] = set()

    def judge(self, reading: Reading) -> Iterator[Fault]:
        """Give what is wrong with one file; a reason that makes further comparing pointless stands alone."""
        found = reading.found
        if not isinstance(found, Invoice):
            yield Kind.UNREADABLE, found.reason
        elif self._came_before(found):
            yield Kind.DUPLICATE_INVOICE, f"invoice {found.number} of this supplier came before"
        else:
            yield from _sums(found)
            yield from self._against_its_order(found)

    def _came_before(self, invoice: Invoice) -> bool:
        identity = (invoice.supplier_id, invoice.number)
        known = identity in self._seen
        self._seen.add(identity)
        return known

    def _against_its_order(self, invoice: Invoice) -> Iterator[Fault]:
        if invoice.order_ref is None:
            yield Kind.NO_ORDER, "no purchase order is named"
            return
        order = self._orders.get(invoice.order_ref)
        if order is None:
            yield Kind.UNKNOWN_ORDER, f"{invoice.order_ref} is not in the orders"
        elif invoice.kind is InvoiceKind.CREDIT_NOTE and order.number not in self._billed:
            yield Kind.CREDIT_NOTE_WITHOUT_INVOICE, f"no invoice of the month bills {order.number}"
        else:
            yield from _terms(invoice, order)
            yield from _lines(invoice, order)


def _sums(invoice: Invoice) -> Iterator[Fault]:
    lines = sum((line.net for line in invoice.lines), Decimal(0))
    expected = lines - invoice.allowances + invoice.charges
    if expected != invoice.net_total:
        yield Kind.TOTAL_MISMATCH, f"the lines come to {expected}, the net total says {invoice.net_total}"


def _terms(invoice: Invoice, order: Order) -> Iterator[Fault]:
    if order.status is OrderStatus.CLOSED:
        yield Kind.CLOSED_ORDER, f"{order.number} is closed"
    if invoice.supplier_id != order.supplier_id:
        yield Kind.OTHER_SUPPLIER, f"{order.number} was placed with {order.supplier} ({order.supplier_id})"
    if invoice.currency != order.currency:
        yield Kind.WRONG_CURRENCY, f"ordered in {order.currency}, billed in {invoice.currency}"


def _lines(invoice: Invoice, order: Order) -> Iterator[Fault]:
    ordered = {line.item: line for line in order.lines}
    for line in invoice.lines:
        if line.item in ordered:
            yield from _line(line, ordered[line.item])
        else:
            yield Kind.EXTRA_LINE, f"{line.item} was not ordered"
    if invoice.kind is InvoiceKind.INVOICE:
        for item in ordered.keys() - {line.item for line in invoice.lines}:
            yield Kind.MISSING_LINE, f"{item} was ordered and is not billed"


def _line(billed: Line, ordered: OrderLine) -> Iterator[Fault]:
    if billed.unit_price != ordered.unit_price:
        yield Kind.WRONG_PRICE, f"{billed.item}: {ordered.unit_price} was agreed, {billed.unit_price} is billed"
    if billed.quantity > ordered.quantity:
        yield Kind.WRONG_QUANTITY, f"{billed.item}: {ordered.quantity} were ordered, {billed.quantity} are billed"


# ── naming ──────────────────────────────────────────────────────────────────────────────────────────


def _grouped(faults: Iterator[Fault]) -> dict[Kind, list[str]]:
    grouped: dict[Kind, list[str]] = {}
    for kind, detail in faults:
        grouped.setdefault(kind, []).append(detail)
    return grouped


def _discrepancy(reading: Reading, kind: Kind, details: list[str]) -> Discrepancy:
    found = reading.found
    invoice = found if isinstance(found, Invoice) else None
    return Discrepancy(
        id=f"{label_of(reading)} {kind}",
        kind=kind,
        subject=invoice.number if invoice else reading.name or reading.mail_id,
        supplier=invoice.supplier if invoice else "",
        sender=reading.sender,
        # Sorted: a set of items has no order of its own, and a discrepancy must be the same on every resume.
        detail="; ".join(sorted(details))[:DETAIL_CHARACTERS_MAX],
    )


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9@._+]+", "-", text).strip("-.")[:ID_CHARACTERS_MAX] or "file"


# ── checking what was found ─────────────────────────────────────────────────────────────────────────


def every_unreadable_file_is_named(found: list[Discrepancy], readings: list[Reading]) -> str | None:
    """Verify that no file was dropped: what gave no invoice stands in the findings, one for one."""
    expected = sorted(label_of(reading) for reading in readings if not isinstance(reading.found, Invoice))
    named = sorted(one.id.removesuffix(f" {Kind.UNREADABLE}") for one in found if one.kind is Kind.UNREADABLE)
    return None if named == expected else f"expected {len(expected)} unreadable files, found {len(named)}"
