"""What was planted in a generated month, in the words of `truth.json`: the answer key of the reconciliation.

Pure. Written by the generator, read by tests and by whoever wants to know how well a matching did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from invoices.model import Invoice


class Planted(StrEnum):
    """One way in which an invoice and the orders do not fit. An invoice carries at most one."""

    WRONG_PRICE = "wrong_price"
    """A line's unit price is not the ordered one; the document adds up."""
    WRONG_QUANTITY = "wrong_quantity"
    """A line bills more than was ordered; the document adds up."""
    UNKNOWN_ORDER = "unknown_order"
    """The order named is in no database."""
    NO_ORDER = "no_order"
    """The invoice names no order."""
    WRONG_CURRENCY = "wrong_currency"
    """Billed in another currency than ordered."""
    DUPLICATE_INVOICE = "duplicate_invoice"
    """The same supplier's invoice number came before, in an earlier mail of the month."""
    TOTAL_MISMATCH = "total_mismatch"
    """The lines' nets do not add up to the net total."""
    MISSING_LINE = "missing_line"
    """An ordered line is not billed."""
    EXTRA_LINE = "extra_line"
    """A billed line was never ordered."""
    CLOSED_ORDER = "closed_order"
    """The order is closed."""
    OTHER_SUPPLIER = "other_supplier"
    """The order was placed with another supplier."""
    CREDIT_NOTE_WITHOUT_INVOICE = "credit_note_without_invoice"
    """A credit note for an order that no invoice of the month bills."""


@dataclass(frozen=True)
class Entry:
    """One mail of the month: what it carries, and what was planted in it.

    `expected` is `invoice`, or the reason why nothing can be read: a code of `model.ReasonCode` or of
    `mailbox.SkippedCode`. `form` says how it travels: ubl, cii, facturx, model, or the name of the damage.
    """

    mail: str
    message_id: str
    sender: str
    attachment: str
    form: str
    expected: str
    invoice: Invoice | None
    planted: Planted | None
    detail: str

    def document(self) -> dict[str, Any]:
        """Give the entry as JSON values, amounts as text."""
        fields = asdict(self)
        invoice = self.invoice
        fields["invoice"] = invoice and {
            "number": invoice.number,
            "kind": invoice.kind,
            "supplier_id": invoice.supplier_id,
            "currency": invoice.currency,
            "order_ref": invoice.order_ref,
            "line_count": len(invoice.lines),
            "net_total": str(invoice.net_total),
            "tax_total": str(invoice.tax_total),
            "payable": str(invoice.payable),
        }
        return fields


def truth_document(seed: int, month: str, entries: Sequence[Entry]) -> dict[str, Any]:
    """Give `truth.json`: the seed, counts by form and by what was planted, and every entry in mail order."""
    return {
        "seed": seed,
        "month": month,
        "forms": dict(sorted(Counter(entry.form for entry in entries).items())),
        "planted": dict(sorted(Counter(entry.planted for entry in entries if entry.planted).items())),
        "entries": [entry.document() for entry in entries],
    }
