"""The plan of a month: which orders there are, which invoices come, and what is planted in them.

Seeded, and in the domain's own types; how an invoice travels is decided elsewhere. Called by `generate`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from random import Random

from invoices.generate.catalogue import PARTS, SUPPLIERS, Supplier
from invoices.generate.plants import PLANTS, Pair, as_credit_note, cents, invoice_line, order_line, with_lines
from invoices.generate.truth import Planted
from invoices.model import Invoice, InvoiceFormat, InvoiceKind
from invoices.orders import Order, OrderStatus

YEAR, MONTH, DAYS = 2026, 10, 31
PLANTED_EACH = 3
CREDIT_NOTES = 6
ORDERS_NEVER_BILLED = 10


@dataclass(frozen=True)
class Drafted:
    """One invoice of the plan with its sender; `format` and `source` are set when it is written."""

    supplier: Supplier
    invoice: Invoice
    planted: Planted | None
    detail: str


@dataclass
class Plan:
    """Orders in the order they were placed, drafts in the order their mails arrive."""

    orders: list[Order] = field(default_factory=list)
    drafts: list[Drafted] = field(default_factory=list)


def plan_month(rng: Random, count: int) -> Plan:
    """Plan `count` invoices: each kind planted `PLANTED_EACH` times, `CREDIT_NOTES` that fit, the rest clean."""
    plan = Plan()
    kinds: list[Planted | None] = [kind for kind in PLANTS for _ in range(PLANTED_EACH)]
    kinds += [None] * (count - len(kinds) - CREDIT_NOTES - PLANTED_EACH)
    rng.shuffle(kinds)
    for kind in kinds:
        _draft(rng, plan, kind)
    for _ in range(CREDIT_NOTES):
        _insert_after_a_clean_one(rng, plan, _credit_note_for)
    for _ in range(PLANTED_EACH):
        _insert_after_a_clean_one(rng, plan, _duplicate_of)
    for _ in range(ORDERS_NEVER_BILLED):
        plan.orders.append(_place_order(rng, rng.choice(SUPPLIERS), len(plan.orders) + 1))
    return Plan(plan.orders, _dated(plan.drafts))


def _draft(rng: Random, plan: Plan, kind: Planted | None) -> None:
    supplier = rng.choice(SUPPLIERS)
    order = _place_order(rng, supplier, len(plan.orders) + 1)
    clean = Pair(_bill(supplier, order), order)
    pair = PLANTS[kind](rng, clean.invoice, order) if kind else clean
    plan.orders.append(pair.order)
    plan.drafts.append(Drafted(supplier, pair.invoice, kind, pair.detail))


def _place_order(rng: Random, supplier: Supplier, count: int) -> Order:
    lines = tuple(order_line(rng, part) for part in rng.sample(PARTS, rng.randint(2, 5)))
    number = f"PO-26-{count:04d}"
    return Order(number, supplier.vat_id, supplier.name, supplier.currency, OrderStatus.OPEN, lines)


def _bill(supplier: Supplier, order: Order) -> Invoice:
    nothing = Decimal(0)
    empty = Invoice(
        number=f"{supplier.short}-R{order.number[-4:]}",
        kind=InvoiceKind.INVOICE,
        supplier=supplier.name,
        supplier_id=supplier.vat_id,
        issued=date(YEAR, MONTH, 1),
        currency=supplier.currency,
        order_ref=order.number,
        lines=(),
        net_total=nothing,
        tax_total=nothing,
        gross_total=nothing,
        payable=nothing,
        source="",
        format=InvoiceFormat.UBL,
    )
    return with_lines(empty, tuple(invoice_line(n, line) for n, line in enumerate(order.lines, start=1)))


def _insert_after_a_clean_one(rng: Random, plan: Plan, make: Callable[[Drafted], Drafted]) -> None:
    numbers = {draft.invoice.number for draft in plan.drafts}
    clean = [
        index
        for index, draft in enumerate(plan.drafts)
        if draft.planted is None
        and draft.invoice.kind is InvoiceKind.INVOICE
        and draft.invoice.number.replace("-R", "-C") not in numbers
    ]
    # Early enough in the month that something can come after it.
    index = rng.choice(clean[: len(clean) * 3 // 4])
    plan.drafts.insert(rng.randint(index + 1, len(plan.drafts)), make(plan.drafts[index]))


def _duplicate_of(first: Drafted) -> Drafted:
    detail = f"invoice {first.invoice.number} was sent before"
    return replace(first, planted=Planted.DUPLICATE_INVOICE, detail=detail)


def _credit_note_for(first: Drafted) -> Drafted:
    line = first.invoice.lines[0]
    returned = replace(line, quantity=Decimal(1), net=cents(line.unit_price))
    return replace(first, invoice=as_credit_note(first.invoice, (returned,)))


def _dated(drafts: list[Drafted]) -> list[Drafted]:
    """Spread the invoices over the month in order of arrival; a duplicate keeps the first one's date."""
    dated: list[Drafted] = []
    first_issued: dict[str, date] = {}
    for index, draft in enumerate(drafts):
        day = date(YEAR, MONTH, 1 + index * DAYS // len(drafts))
        issued = first_issued.setdefault(draft.invoice.number, day)
        dated.append(replace(draft, invoice=replace(draft.invoice, issued=issued)))
    return dated
