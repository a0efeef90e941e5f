"""What a month's reconciliation ends with: counts, every discrepancy with its reference, every mail. Plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from invoices.matching import Discrepancy, Reading
from invoices.model import Invoice, InvoiceFormat


@dataclass(frozen=True, slots=True)
class Posted:
    """A discrepancy that the accounting queue has accepted, under the queue's own reference."""

    discrepancy: Discrepancy
    ref: str


@dataclass(frozen=True, slots=True)
class Mailed:
    """A supplier told by mail; `refused` is why the provider did not take it, and then there is no Message-ID."""

    to: str
    message_id: str
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """The month in numbers, and everything a person has to look at."""

    month: str
    file_count: int
    invoice_count: int
    by_model_count: int
    posted: list[Posted]
    mails: list[Mailed]

    @classmethod
    def of(cls, month: str, readings: Sequence[Reading], posted: list[Posted], mails: list[Mailed]) -> Report:
        """Sum up a month."""
        invoices = [reading.found for reading in readings if isinstance(reading.found, Invoice)]
        by_model = sum(invoice.format is InvoiceFormat.MODEL for invoice in invoices)
        return cls(month, len(readings), len(invoices), by_model, posted, mails)
