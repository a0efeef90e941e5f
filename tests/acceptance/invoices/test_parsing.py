"""Real and hand-written invoices give the values that a person reads in them.

The table was filled by reading the files, not by running the parser.
"""

from datetime import date
from decimal import Decimal as D

import pytest
from invoices.model import ZERO, Invoice, InvoiceFormat, InvoiceKind, NeedsModel
from invoices.parsing import read_invoice

# file, number, currency, lines, net, tax, gross, payable
REAL_INVOICES = [
    ("ubl/peppol-Allowance-example.xml", "Snippet1", "EUR", 3, "5900", "1225.00", "7125", "6125.00"),
    ("ubl/peppol-Vat-category-S.xml", "Snippet1", "EUR", 3, "7000", "1550.00", "8550", "8550"),
    ("ubl/peppol-base-creditnote-correction.xml", "Snippet1", "EUR", 2, "1325", "331.25", "1656.25", "1656.25"),
    ("ubl/peppol-base-example.xml", "Snippet1", "EUR", 2, "1325", "331.25", "1656.25", "1656.25"),
    ("ubl/peppol-base-negative-inv-correction.xml",
     "Correction1", "EUR", 2, "-1325", "-331.25", "-1656.25", "-1656.25"),
    ("ubl/peppol-sales-order-example.xml", "Snippet1", "EUR", 2, "1325", "331.25", "1656.25", "1656.25"),
    ("ubl/peppol-vat-category-E.xml", "Vat-Z", "GBP", 1, "1200.00", "0.00", "1200.00", "1200.00"),
    ("ubl/peppol-vat-category-O.xml", "Vat-O", "SEK", 1, "3200.00", "0.00", "3200.00", "3200.00"),
    ("ubl/peppol-vat-category-Z.xml", "Vat-Z", "GBP", 1, "1200.00", "0.00", "1200.00", "1200.00"),
    ("ubl/ubl-tc434-example1.xml", "12115118", "EUR", 20, "229.60", "20.73", "250.33", "250.33"),
    ("ubl/ubl-tc434-example2.xml", "TOSL108", "NOK", 5, "1436.50", "365.28", "1801.78", "801.78"),
    ("ubl/ubl-tc434-example3.xml", "TOSL108", "DKK", 2, "1700.00", "305.00", "2005.00", "2005.00"),
    ("ubl/ubl-tc434-example4.xml", "TOSL110", "DKK", 3, "4000.00", "675.00", "4675.00", "4675.00"),
    ("ubl/ubl-tc434-example5.xml", "TOSL110", "DKK", 3, "4000.00", "675.00", "4675.00", "2337.50"),
    ("cii/CII_example1.xml", "12115118", "EUR", 20, "229.6", "20.73", "250.33", "250.33"),
    ("cii/CII_example2.xml", "TOSL108", "NOK", 5, "1436.5", "365.28", "1801.78", "801.78"),
    ("cii/CII_example3.xml", "TOSL108", "DKK", 1, "900", "225", "1125", "1125"),
    ("cii/CII_example4.xml", "TOSL110", "DKK", 3, "4000", "675", "4675", "4675"),
    ("facturx/EN16931_Einfach.pdf", "471102", "EUR", 2, "473.00", "56.87", "529.87", "529.87"),
    ("facturx/EN16931_Gutschrift.pdf", "471102", "EUR", 2, "473.00", "56.87", "529.87", "529.87"),
    ("facturx/EN16931_Miete.pdf", "9314110911/00/M/00/N", "EUR", 6, "286.52", "54.44", "340.96", "340.96"),
    ("facturx/EN16931_Rabatte.pdf", "471102", "EUR", 4, "193.77", "21.30", "215.07", "165.07"),
    ("facturx/EN16931_Rechnungskorrektur.pdf", "RK21012345", "EUR", 2, "-7.67", "-1.12", "-8.79", "-8.79"),
    ("facturx/XRECHNUNG_Einfach.pdf", "471102", "EUR", 2, "473.00", "56.87", "529.87", "529.87"),
]  # fmt: skip
REAL_PATHS = [row[0] for row in REAL_INVOICES]

# Lines whose document says net != quantity x unit price: a line allowance or charge, a price rounded to four places, a
# return without a minus sign, and samples whose base quantity is simply wrong. Reading keeps what is written.
NOT_MULTIPLYING = {
    "cii/CII_example1.xml": ["20"],
    "cii/CII_example2.xml": ["1", "2", "3", "4", "5"],
    "facturx/EN16931_Rabatte.pdf": ["1"],
    "ubl/peppol-Allowance-example.xml": ["1", "3"],
    "ubl/ubl-tc434-example1.xml": ["20"],
    "ubl/ubl-tc434-example2.xml": ["1"],
    "ubl/ubl-tc434-example3.xml": ["1", "2"],
}


def invoice(name: str, data: bytes) -> Invoice:
    outcome = read_invoice(name, data)
    assert isinstance(outcome, Invoice), outcome
    return outcome


@pytest.mark.parametrize("row", REAL_INVOICES, ids=REAL_PATHS)
def test_real_invoices_give_the_values_written_in_them(real, row):
    """The whole month rests on these seven values."""
    path, number, currency, line_count, net, tax, gross, payable = row
    read = invoice(path, real(path))
    totals = (read.net_total, read.tax_total, read.gross_total, read.payable)
    assert (read.number, read.currency, len(read.lines)) == (number, currency, line_count)
    assert totals == (D(net), D(tax), D(gross), D(payable))
    assert read.source == path
    assert read.format == InvoiceFormat(path.split("/")[0])


@pytest.mark.parametrize("path", REAL_PATHS)
def test_real_invoices_add_up_with_the_allowances_and_charges_read(real, path):
    """If all five parts of each sum are read rightly, every one of these documents adds up."""
    read = invoice(path, real(path))
    assert sum(line.net for line in read.lines) - read.allowances + read.charges == read.net_total
    assert read.net_total + read.tax_total == read.gross_total
    assert read.gross_total - read.prepaid + read.rounding == read.payable


@pytest.mark.parametrize("path", REAL_PATHS)
def test_the_lines_of_real_invoices_multiply_except_for_the_known_ones(real, path):
    """Quantity, price and base quantity are read rightly where the document itself is consistent."""
    read = invoice(path, real(path))
    unequal = [line.number for line in read.lines if line.quantity * line.unit_price != line.net]
    assert unequal == NOT_MULTIPLYING.get(path, [])


@pytest.mark.parametrize(
    ("path", "kind", "supplier", "supplier_id", "issued", "order_ref"),
    [
        ("ubl/peppol-base-creditnote-correction.xml", "credit_note", "SupplierOfficialName Ltd", "GB1232434",
         date(2017, 11, 13), None),
        ("ubl/peppol-vat-category-O.xml", "invoice", "The Sellercompany Incorporated", "7300010000001",
         date(2018, 8, 30), None),
        ("ubl/peppol-sales-order-example.xml", "invoice", "SupplierOfficialName Ltd", "GB1232434",
         date(2017, 11, 13), None),
        ("ubl/ubl-tc434-example5.xml", "invoice", "SellerCompany", "NL16356706", date(2013, 4, 10), "PO4711"),
        ("cii/CII_example2.xml", "invoice", "Salescompany ltd.", "NO123456789MVA", date(2013, 6, 30), "123"),
        ("facturx/EN16931_Rabatte.pdf", "invoice", "Lieferant GmbH", "DE123456789", date(2018, 6, 5), "2013-471331"),
    ],
)  # fmt: skip
def test_who_when_and_which_order_are_read(real, path, kind, supplier, supplier_id, issued, order_ref):
    """Matching starts from these; `NA` is Peppol's way to say that there is no order."""
    read = invoice(path, real(path))
    assert (read.kind, read.supplier, read.supplier_id) == (kind, supplier, supplier_id)
    assert (read.issued, read.order_ref) == (issued, order_ref)


def test_ubl_invoice_is_read_whole(written):
    """Price per 100, allowances, prepayment, rounding, two tax currencies, an extension that lies about the number."""
    read = invoice("a.xml", written("ubl_invoice.xml"))
    assert (read.number, read.supplier, read.supplier_id) == ("UB-1001", "Schrauben Meier & Söhne", "DE111222333")
    assert (read.issued, read.order_ref, read.tax_total) == (date(2026, 10, 5), "PO-77", D("38.95"))
    assert (read.allowances, read.charges, read.prepaid, read.rounding) == (D(10), D(5), D(100), D("0.05"))
    bolts, grease = read.lines
    assert (bolts.item, bolts.description, bolts.order_ref) == ("M8-40", "Hex bolt M8", "3")
    assert (bolts.quantity, bolts.unit, bolts.unit_price, bolts.net) == (D(400), "C62", D("0.5"), D(190))
    assert (grease.item, grease.quantity, grease.unit, grease.order_ref) == ("Grease", D("2.5"), "KGM", None)


def test_ubl_credit_note_keeps_its_signs_and_may_leave_out_tax(written):
    """A credit note is positive in UBL; without a tax total the totals themselves must say that there is none."""
    read = invoice("c.xml", written("ubl_credit_note.xml"))
    assert (read.kind, read.order_ref, read.supplier_id) == (InvoiceKind.CREDIT_NOTE, None, "")
    assert (read.net_total, read.tax_total, read.lines[0].quantity) == (D("0.50"), ZERO, D(1))


def test_cii_invoice_is_read_whole(written):
    """A corrected invoice (384) is an invoice; the buyer's item id comes before the standard one."""
    read = invoice("b.xml", written("cii_invoice.xml"))
    assert (read.number, read.kind, read.supplier_id) == ("CI-2002", InvoiceKind.INVOICE, "DE444555666")
    assert (read.tax_total, read.prepaid, read.payable, read.charges) == (D("15.20"), D(20), D("75.20"), D(5))
    rivets, pliers = read.lines
    assert (rivets.item, rivets.unit_price, rivets.order_ref) == ("B-RIVET", D("0.0125"), "10")
    assert (pliers.quantity, pliers.net) == (D(-1), D(-25))


def test_the_older_draft_is_read_by_todays_reader(written):
    """ZUGFeRD 1.0 files are still sent."""
    read = invoice("z.xml", written("zugferd_1.xml"))
    assert (read.number, read.kind, read.order_ref) == ("ZF-1", InvoiceKind.CREDIT_NOTE, "PO-79")
    assert (read.net_total, read.gross_total, read.lines[0].item) == (D(10), D("11.90"), "N-1")


@pytest.mark.parametrize("attached", ["factur-x.xml", "ZUGFeRD-invoice.xml", "zugferd-invoice.xml", "xrechnung.xml"])
def test_each_attachment_name_of_the_standards_is_found(facturx, written, attached):
    """The name changed with each version of the standard."""
    read = invoice("f.pdf", facturx({"terms.txt": b"net 30", attached: written("cii_invoice.xml")}))
    assert (read.number, read.format) == ("CI-2002", InvoiceFormat.FACTURX)


def test_a_pdf_without_xml_comes_back_as_text_for_the_model():
    """Only the text leaves; whether and how a model reads it is the task's decision."""
    outcome = read_invoice("page.pdf", text_pdf("Invoice 4711, total 12.50 EUR"))
    assert outcome == NeedsModel(source="page.pdf", text="Invoice 4711, total 12.50 EUR")


@pytest.mark.parametrize("name", ["invoice.pdf", "invoice", "../../etc/passwd", "invoice.xml.exe"])
def test_the_content_decides_and_not_the_name(written, name):
    """Mail clients invent names and extensions; a name is only a label."""
    assert invoice(name, written("ubl_invoice.xml")).source == name


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "iso-8859-1"])
def test_encodings_and_byte_order_marks_change_nothing(written, encoding):
    """The umlaut in the supplier's name survives each of them."""
    declared = {"utf-8-sig": "UTF-8", "utf-16-le": "UTF-16", "utf-16-be": "UTF-16"}.get(encoding, encoding)
    document = written("ubl_invoice.xml").decode().replace('encoding="UTF-8"', f'encoding="{declared}"')
    assert invoice("e.xml", document.encode(encoding)).supplier == "Schrauben Meier & Söhne"


def text_pdf(words: str) -> bytes:
    """Write the smallest PDF that shows one line of text."""
    content = f"BT /F1 12 Tf 20 100 Td ({words}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 200] /Contents 4 0 R "
        b"/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
    ]
    body, offsets = b"%PDF-1.4\n", []
    for index, written_object in enumerate(objects, start=1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (index, written_object)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    trailer = b"trailer\n<< /Size 5 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % len(body)
    return body + b"xref\n0 5\n0000000000 65535 f \n" + table + trailer
