"""How each mismatch is planted: from a clean invoice and its order to the pair that does not fit.

Pure but for the chance that is handed in. `PLANTS` has one entry for each kind that changes a single invoice;
duplicates need the whole month and live in `plan`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from random import Random

from invoices.generate.catalogue import PARTS, SUPPLIERS, Part
from invoices.generate.truth import Planted
from invoices.model import Invoice, InvoiceKind, Line
from invoices.orders import Order, OrderLine, OrderStatus

VAT_PERCENT = Decimal(19)
CENT = Decimal("0.01")
RAISE = Decimal("0.08")


@dataclass(frozen=True)
class Pair:
    """An invoice, the order as the database will have it, and one sentence on what does not fit."""

    invoice: Invoice
    order: Order
    detail: str = ""


def with_lines(invoice: Invoice, lines: tuple[Line, ...]) -> Invoice:
    """Give the invoice other lines, and totals that add up."""
    return with_net(replace(invoice, lines=lines), sum((line.net for line in lines), Decimal(0)))


def with_net(invoice: Invoice, net: Decimal) -> Invoice:
    """State a net total, with the tax and the gross that follow from it."""
    tax = cents(net * VAT_PERCENT / 100)
    return replace(invoice, net_total=net, tax_total=tax, gross_total=net + tax, payable=net + tax)


def as_credit_note(invoice: Invoice, lines: tuple[Line, ...]) -> Invoice:
    """Give these lines back; amounts stay positive, as in a UBL CreditNote and a CII document of type 381."""
    number = invoice.number.replace("-R", "-C")
    return with_lines(replace(invoice, kind=InvoiceKind.CREDIT_NOTE, number=number), lines)


def order_line(rng: Random, part: Part) -> OrderLine:
    """Order some of a part; what is measured rather than counted may come in halves."""
    quantity = Decimal(rng.randint(1, 120))
    if part.unit != "C62" and rng.random() < 0.4:
        quantity += Decimal("0.5")
    return OrderLine(part.item, part.description, quantity, part.unit, part.price)


def invoice_line(number: int, line: OrderLine) -> Line:
    """Bill an order line as it was ordered."""
    net = cents(line.quantity * line.unit_price)
    return Line(str(number), line.item, line.description, line.quantity, line.unit, line.unit_price, net)


def cents(amount: Decimal) -> Decimal:
    """Round an amount to cents, half up."""
    return amount.quantize(CENT, ROUND_HALF_UP)


def _wrong_price(rng: Random, invoice: Invoice, order: Order) -> Pair:
    index = rng.randrange(len(invoice.lines))
    price = invoice.lines[index].unit_price
    return _with_changed_line(invoice, order, index, unit_price=price + max(CENT, cents(price * RAISE)))


def _wrong_quantity(rng: Random, invoice: Invoice, order: Order) -> Pair:
    index = rng.randrange(len(invoice.lines))
    return _with_changed_line(invoice, order, index, quantity=invoice.lines[index].quantity + rng.randint(1, 20))


def _with_changed_line(invoice: Invoice, order: Order, index: int, **change: Decimal) -> Pair:
    before = invoice.lines[index]
    after = replace(before, **change)  # type: ignore[arg-type]  # the two callers name amounts
    after = replace(after, net=cents(after.quantity * after.unit_price))
    lines = (*invoice.lines[:index], after, *invoice.lines[index + 1 :])
    ((what, billed),) = change.items()
    detail = f"{before.item}: {what} {getattr(before, what)} was ordered, {billed} is billed"
    return Pair(with_lines(invoice, lines), order, detail)


def _unknown_order(rng: Random, invoice: Invoice, order: Order) -> Pair:
    number = f"PO-26-9{rng.randint(0, 999):03d}"
    return Pair(replace(invoice, order_ref=number), order, f"{number} is in no database")


def _no_order(_rng: Random, invoice: Invoice, order: Order) -> Pair:
    return Pair(replace(invoice, order_ref=None), order, "no order is named")


def _wrong_currency(_rng: Random, invoice: Invoice, order: Order) -> Pair:
    other = "USD" if order.currency == "EUR" else "EUR"
    detail = f"ordered in {order.currency}, billed in {other}"
    return Pair(replace(invoice, currency=other), order, detail)


def _total_mismatch(rng: Random, invoice: Invoice, order: Order) -> Pair:
    wrong = with_net(invoice, invoice.net_total + rng.randint(5, 90))
    detail = f"the lines add up to {invoice.net_total}, the net total says {wrong.net_total}"
    return Pair(wrong, order, detail)


def _missing_line(_rng: Random, invoice: Invoice, order: Order) -> Pair:
    detail = f"{invoice.lines[-1].item} was ordered and is not billed"
    return Pair(with_lines(invoice, invoice.lines[:-1]), order, detail)


def _extra_line(rng: Random, invoice: Invoice, order: Order) -> Pair:
    ordered = {line.item for line in order.lines}
    part = rng.choice([part for part in PARTS if part.item not in ordered])
    extra = invoice_line(len(invoice.lines) + 1, order_line(rng, part))
    return Pair(with_lines(invoice, (*invoice.lines, extra)), order, f"{part.item} was not ordered")


def _closed_order(_rng: Random, invoice: Invoice, order: Order) -> Pair:
    return Pair(invoice, replace(order, status=OrderStatus.CLOSED), f"{order.number} is closed")


def _other_supplier(rng: Random, invoice: Invoice, order: Order) -> Pair:
    other = rng.choice([supplier for supplier in SUPPLIERS if supplier.vat_id != order.supplier_id])
    placed = replace(order, supplier_id=other.vat_id, supplier=other.name)
    return Pair(invoice, placed, f"{order.number} was placed with {other.name}")


def _credit_note_without_invoice(_rng: Random, invoice: Invoice, order: Order) -> Pair:
    return Pair(as_credit_note(invoice, invoice.lines[:1]), order, f"no invoice bills {order.number}")


PLANTS: dict[Planted, Callable[[Random, Invoice, Order], Pair]] = {
    Planted.WRONG_PRICE: _wrong_price,
    Planted.WRONG_QUANTITY: _wrong_quantity,
    Planted.UNKNOWN_ORDER: _unknown_order,
    Planted.NO_ORDER: _no_order,
    Planted.WRONG_CURRENCY: _wrong_currency,
    Planted.TOTAL_MISMATCH: _total_mismatch,
    Planted.MISSING_LINE: _missing_line,
    Planted.EXTRA_LINE: _extra_line,
    Planted.CLOSED_ORDER: _closed_order,
    Planted.OTHER_SUPPLIER: _other_supplier,
    Planted.CREDIT_NOTE_WITHOUT_INVOICE: _credit_note_without_invoice,
}
