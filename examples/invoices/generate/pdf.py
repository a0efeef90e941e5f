"""Writes an invoice as a PDF page, with the CII document embedded (Factur-X) or without (a model has to read it).

Nothing is compressed and no clock is asked, so the same invoice gives the same bytes on every machine. Pure.
"""

from __future__ import annotations

from io import BytesIO

from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, NameObject
from reportlab.lib.pagesizes import A4
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas

from invoices.generate.catalogue import BUYER_NAME
from invoices.generate.cii import cii_bytes
from invoices.generate.plants import VAT_PERCENT
from invoices.model import Invoice, InvoiceKind, Line

LEFT, TOP, LINE_HEIGHT = 56, 780, 16
COLUMNS = (56, 84, 170, 380, 430, 470, 520)
HEADINGS = ("Pos", "Item", "Description", "Quantity", "Unit", "Price", "Amount")


def pdf_bytes(invoice: Invoice, *, note: str = "", password: str | None = None) -> bytes:
    """Give one page with everything on it as text; `note` is printed at its foot."""
    target = BytesIO()
    lock = StandardEncryption(password, strength=40) if password else None
    canvas = Canvas(target, pagesize=A4, invariant=1, pageCompression=0, encrypt=lock)
    canvas.setTitle(invoice.number)
    canvas.setFont("Helvetica", 9)
    y = TOP
    for text in _head(invoice):
        canvas.drawString(LEFT, y, text)
        y -= LINE_HEIGHT
    for row in (HEADINGS, *(_row(line) for line in invoice.lines)):
        y -= LINE_HEIGHT
        for x, cell in zip(COLUMNS, row, strict=True):
            canvas.drawString(x, y, cell)
    y -= LINE_HEIGHT
    for text in (*_totals(invoice), note):
        y -= LINE_HEIGHT
        canvas.drawString(LEFT, y, text)
    canvas.showPage()
    canvas.save()
    return target.getvalue()


def facturx_bytes(invoice: Invoice) -> bytes:
    """Give the page with the invoice's CII document embedded as `factur-x.xml`."""
    writer = PdfWriter(clone_from=PdfReader(BytesIO(pdf_bytes(invoice))))
    embedded = writer.add_attachment("factur-x.xml", cii_bytes(invoice))
    embedded.pdf_object[NameObject("/AFRelationship")] = NameObject("/Alternative")
    reference = embedded.pdf_object.indirect_reference
    assert reference is not None
    writer.root_object[NameObject("/AF")] = ArrayObject([reference])
    target = BytesIO()
    writer.write(target)
    return target.getvalue()


def _head(invoice: Invoice) -> tuple[str, ...]:
    title = "Credit note" if invoice.kind is InvoiceKind.CREDIT_NOTE else "Invoice"
    order = (f"Purchase order: {invoice.order_ref}",) if invoice.order_ref is not None else ()
    return (
        f"Supplier: {invoice.supplier}",
        f"VAT id: {invoice.supplier_id}",
        f"Customer: {BUYER_NAME}",
        f"{title} number: {invoice.number}",
        f"Date: {invoice.issued.isoformat()}",
        *order,
        f"Currency: {invoice.currency}",
    )


def _row(line: Line) -> tuple[str, ...]:
    numbers = (str(line.quantity), line.unit, str(line.unit_price), str(line.net))
    return (line.number, line.item, line.description, *numbers)


def _totals(invoice: Invoice) -> tuple[str, ...]:
    return (
        f"Net total: {invoice.net_total}",
        f"VAT {VAT_PERCENT} %: {invoice.tax_total}",
        f"Total: {invoice.gross_total}",
        f"Amount due: {invoice.payable}",
    )
