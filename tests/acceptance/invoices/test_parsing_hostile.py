"""Hostile, damaged and incomplete files each become a named reason; none becomes an exception or an invoice."""

import re
import socket
import zlib
from decimal import Decimal, localcontext

import pytest
from invoices.model import Invoice, ReasonCode, Unreadable
from invoices.parsing import fields, pdf, read_invoice, tree

UBL_ROOT = '<Invoice xmlns="urn:oasis:names:specification:ubl:schema:xsd:Invoice-2">'


def refused(data: bytes, code: ReasonCode, *words: str) -> Unreadable:
    """Read, and expect the reason code and each of the words in the sentence."""
    outcome = read_invoice("bad.xml", data)
    assert isinstance(outcome, Unreadable), outcome
    assert outcome.reason_code is code, outcome
    assert all(word in outcome.reason for word in words), outcome.reason
    assert outcome.reason.startswith("Expected ")
    assert outcome.reason.isascii() or "…" in outcome.reason
    return outcome


BILLION_LAUGHS = (
    '<!DOCTYPE Invoice [<!ENTITY a "lol">'
    + "".join(f'<!ENTITY {y} "{f"&{x};" * 10}">' for x, y in zip("abcdefghi", "bcdefghij", strict=True))
    + "]>"
)


@pytest.mark.parametrize(
    "doctype",
    [
        pytest.param(BILLION_LAUGHS, id="billion-laughs"),
        pytest.param('<!DOCTYPE Invoice [<!ENTITY j SYSTEM "file:///etc/passwd">]>', id="file-entity"),
        pytest.param('<!DOCTYPE Invoice [<!ENTITY % j SYSTEM "http://127.0.0.1:9/x.dtd"> %j;]>', id="parameter-entity"),
        pytest.param('<!DOCTYPE Invoice SYSTEM "http://127.0.0.1:9/x.dtd">', id="external-dtd"),
        pytest.param('<!DOCTYPE Invoice [<!ATTLIST Invoice ID CDATA "1">]>', id="default-attribute"),
        pytest.param("<!DOCTYPE Invoice>", id="bare"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_every_doctype_is_refused_before_anything_in_it_counts(doctype, encoding):
    """Bombs, file reads and outside calls all begin with one, whatever the encoding that hides it."""
    document = f"{doctype}{UBL_ROOT}<ID>&j;</ID></Invoice>"
    refused(document.encode(encoding), ReasonCode.HOSTILE, "DOCTYPE")


def test_an_external_dtd_makes_no_connection():
    """Refusing is not enough: nobody may learn that we opened the mail."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/x.dtd"
        refused(f'<!DOCTYPE Invoice SYSTEM "{url}">{UBL_ROOT}</Invoice>'.encode(), ReasonCode.HOSTILE)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_an_undeclared_entity_is_damage():
    """Without a DOCTYPE there is nothing that an entity could stand for."""
    refused(f"{UBL_ROOT}<ID>&secret;</ID></Invoice>".encode(), ReasonCode.DAMAGED, "well-formed")


@pytest.mark.parametrize("name", ["a", "x:a"])
def test_deep_nesting_is_refused(name):
    """Also where the depth is made of elements that we would leave out."""
    space = ' xmlns:x="urn:other"' if name == "x:a" else ""
    deep = f"<{name}>" * 5_000 + f"</{name}>" * 5_000
    root = UBL_ROOT.replace(">", f"{space}>")
    refused(f"{root}{deep}</Invoice>".encode(), ReasonCode.HOSTILE, "deep")


def test_too_many_elements_are_refused():
    """Bytes alone do not bound memory: the smallest element has four."""
    refused(f"{UBL_ROOT}{'<a/>' * tree.ELEMENTS_MAX}</Invoice>".encode(), ReasonCode.HOSTILE, "elements")


def test_thirty_megabytes_of_xml_are_refused_unparsed():
    """The bound is on the bytes, so it holds before a parser sees them."""
    refused(UBL_ROOT.encode() + b" " * 30_000_000 + b"</Invoice>", ReasonCode.TOO_LARGE, "bytes")


def test_an_attachment_that_unpacks_to_thirty_megabytes_is_refused(facturx):
    """30 KB in the mail, 30 MB in memory: the unpacking stops at the bound."""
    bomb = facturx({"factur-x.xml": b" " * 30_000_000})
    assert len(bomb) < 100_000
    refused(bomb, ReasonCode.TOO_LARGE, "unpack")


@pytest.mark.parametrize(
    ("data", "code", "found"),
    [
        (b"", ReasonCode.EMPTY, "0 bytes"),
        (b" \n\t", ReasonCode.EMPTY, "3 bytes"),
        (b"<!DOCTYPE html><html><body>Login</body></html>", ReasonCode.UNKNOWN_FORMAT, "HTML"),
        (b"<html><body><p>Login<br></body></html>", ReasonCode.UNKNOWN_FORMAT, "'html'"),
        (b"<Invoice><ID>1</ID></Invoice>", ReasonCode.UNKNOWN_FORMAT, "'Invoice'"),
        (b"PK\x03\x04rest", ReasonCode.UNKNOWN_FORMAT, "ZIP"),
        (b"Dear Sir,", ReasonCode.UNKNOWN_FORMAT, "'Dear Sir,'"),
        (b"\x1b[2Jpaid", ReasonCode.UNKNOWN_FORMAT, r"\x1b[2J"),
        (b"<", ReasonCode.DAMAGED, "XML error"),
        (b'<?xml version="1.0" encoding="nope"?><a/>', ReasonCode.DAMAGED, "XML error"),
        (UBL_ROOT.encode(), ReasonCode.DAMAGED, "XML error"),
        (b"%PDF-1.7\n", ReasonCode.DAMAGED, "cut off"),
        (b"%PDF-1.7\n%%EOF", ReasonCode.DAMAGED, "Error"),
    ],
)
def test_what_is_no_invoice_says_what_it_is(data, code, found):
    """The report's reader learns what the supplier really sent, and no escape sequence reaches a terminal."""
    refused(data, code, found)


@pytest.mark.parametrize(
    ("sample", "pattern", "replacement", "code", "words"),
    [
        ("ubl_invoice.xml", r"<cbc:ID>UB-1001</cbc:ID>", "", "incomplete", ["an invoice number", "Invoice/ID"]),
        ("ubl_invoice.xml", r"<cbc:ID>UB-1001</cbc:ID>", "<cbc:ID> </cbc:ID>", "incomplete", ["an invoice number"]),
        ("ubl_invoice.xml", r"<cbc:DocumentCurrencyCode>EUR</[^>]*>", "", "incomplete", ["a currency"]),
        ("ubl_invoice.xml", r"(?s)<cac:LegalMonetaryTotal>.*</cac:LegalMonetaryTotal>", "", "incomplete", ["totals"]),
        ("ubl_invoice.xml", r"<cbc:TaxExclusiveAmount.*", "", "incomplete", ["a net total"]),
        ("ubl_invoice.xml", r"<cbc:TaxInclusiveAmount.*", "", "incomplete", ["a gross total"]),
        ("ubl_invoice.xml", r"<cbc:PayableAmount.*", "", "incomplete", ["a payable amount"]),
        ("ubl_invoice.xml", r"<cac:TaxTotal>.*", "", "incomplete", ["a tax total"]),
        ("ubl_invoice.xml", r"(?s)<cac:InvoiceLine>.*</cac:InvoiceLine>", "", "incomplete", ["one InvoiceLine"]),
        ("ubl_invoice.xml", r"<cbc:InvoicedQuantity.*KGM.*", "", "incomplete", ["a quantity of line 2"]),
        ("ubl_invoice.xml", r"<cbc:RegistrationName>(?s:.*?)</[^>]*>", "", "incomplete", ["a supplier name"]),
        ("ubl_invoice.xml", r"2026-10-05\+02:00", "2026-02-30", "invalid", ["an issue date", "'2026-02-30'"]),
        ("ubl_invoice.xml", r">EUR<", ">euro<", "invalid", ["three letters", "'euro'"]),
        ("ubl_invoice.xml", r'"EUR">205.00', '"USD">205.00', "invalid", ["a net total in EUR", "'USD'"]),
        ("ubl_invoice.xml", r'"EUR">20.00', '"USD">20.00', "invalid", ["a net amount of line 2 in EUR"]),
        ("ubl_invoice.xml", r">205.00<", ">1E+999999<", "invalid", ["a net total as a number"]),
        ("ubl_invoice.xml", r">205.00<", ">NaN<", "invalid", ["'NaN'"]),
        ("ubl_invoice.xml", r">205.00<", ">205,00<", "invalid", ["'205,00'"]),
        ("ubl_invoice.xml", r">205.00<", f">{'9' * 5000}<", "invalid", ["30 digits"]),
        ("ubl_invoice.xml", r"(<cbc:PayableAmount.*)", r"\1\1", "invalid", ["a payable amount once", "2 times"]),
        ("ubl_invoice.xml", r">100</cbc:BaseQuantity>", ">0</cbc:BaseQuantity>", "invalid", ["above zero"]),
        ("ubl_invoice.xml", r">UB-1001<", f">{'U' * 2_000}<", "too_large", ["characters"]),
        ("cii_invoice.xml", r"<ram:ID>CI-2002</ram:ID>", "", "incomplete", ["an invoice number"]),
        ("cii_invoice.xml", r"<ram:InvoiceCurrencyCode>.*", "", "incomplete", ["a currency"]),
        ("cii_invoice.xml", r"<ram:GrandTotalAmount>.*", "", "incomplete", ["a gross total"]),
        ("cii_invoice.xml", r'format="102">20261012', 'format="610">202610', "invalid", ["format 102", "'610'"]),
        ("cii_invoice.xml", r"(?s)<ram:IncludedSupply.*TradeLineItem>", "", "incomplete", ["BASIC", "MINIMUM"]),
    ],
)  # fmt: skip
def test_a_missing_or_malformed_value_is_refused_by_name(written, sample, pattern, replacement, code, words):
    """Guessing one of them would put a wrong number into the books."""
    broken, count = re.subn(pattern, replacement, written(sample).decode())
    assert count
    refused(broken.encode(), ReasonCode(code), *words)


def test_two_embedded_invoices_are_refused(facturx, written):
    """One for the reader, another for the books: nobody may choose in silence."""
    xml = written("cii_invoice.xml")
    refused(facturx({"factur-x.xml": xml, "xrechnung.xml": xml}), ReasonCode.INVALID, "one embedded invoice")


def test_a_pdf_with_neither_xml_nor_text_is_named(facturx):
    """A scan needs eyes, and the reason says so."""
    refused(facturx({}), ReasonCode.NO_XML, "factur-x.xml", "scanned")


def test_an_embedded_file_is_read_as_hardened_as_a_loose_one(facturx):
    """A PDF is no way around the XML bounds."""
    refused(facturx({"factur-x.xml": b"<!DOCTYPE x><x/>"}), ReasonCode.HOSTILE, "DOCTYPE")


@pytest.mark.parametrize("password", ["", "secret"])
def test_an_encrypted_pdf_is_named(facturx, password):
    """Also where the password is empty: the answer must not depend on which ciphers are installed."""
    refused(facturx(password=password), ReasonCode.ENCRYPTED, "encrypted")


def test_an_aes_encrypted_pdf_is_named_without_the_cipher():
    """pypdf's crypto extra is optional here; its absence must not look like damage."""
    zeros = b"<%s>" % (b"00" * 48)
    crypt = b"/V 5 /R 6 /Length 256 /P -4 /O %s /U %s /OE %s /UE %s /Perms <%s>" % (*[zeros] * 4, b"00" * 16)
    filters = b"/CF << /StdCF << /CFM /AESV3 /Length 32 >> >> /StmF /StdCF /StrF /StdCF"
    objects = b"1 0 obj\n<< /Type /Catalog >>\nendobj\n2 0 obj\n<< /Filter /Standard %s %s >>\nendobj\n" % (
        crypt,
        filters,
    )
    trailer = b"trailer\n<< /Root 1 0 R /Encrypt 2 0 R /ID [<00> <00>] /Size 3 >>\nstartxref\n0\n%%EOF\n"
    refused(b"%PDF-1.7\n" + objects + trailer, ReasonCode.ENCRYPTED, "encrypted")


@pytest.mark.parametrize("name", [b"/FlateDecodX", b"/Fl         "])
def test_a_filter_that_pypdf_does_not_decode_is_damage(facturx, name):
    """Each of them raises another kind of exception inside pypdf, one of them not even its own."""
    refused(facturx().replace(b"/FlateDecode", name), ReasonCode.DAMAGED, "readable PDF")


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9, 0.99])
def test_a_truncated_pdf_is_damaged(facturx, kept):
    """A repair might find the pages and lose the invoice."""
    whole = facturx()
    refused(whole[: int(len(whole) * kept)], ReasonCode.DAMAGED)


def test_a_pdf_of_objects_nested_without_end_is_refused():
    """Recursion is bounded, by us or by Python."""
    nested = b"%PDF-1.4\n1 0 obj\n" + b"[" * 200_000 + b"]" * 200_000 + b"\nendobj\n"
    data = nested + b"trailer\n<< /Root 1 0 R >>\nstartxref\n9\n%%EOF\n"
    assert isinstance(read_invoice("deep.pdf", data), Unreadable)


def test_a_pdf_over_the_size_bound_is_refused():
    """The bound holds before pypdf sees a byte."""
    refused(b"%PDF-1.4\n" + b"0" * pdf.PDF_BYTES_MAX + b"%%EOF", ReasonCode.TOO_LARGE, "bytes")


def test_pypdf_writes_nothing_to_the_log(facturx, caplog):
    """A month of odd PDFs must not bury the run's own lines."""
    read_invoice("odd.pdf", facturx().replace(b"startxref", b"startxxxx"))
    assert not caplog.records


def test_a_flipped_byte_in_the_packed_invoice_is_never_another_invoice(facturx, written):
    """pypdf would leave out what it cannot unpack, and a digit with it; the stream's checksum is proven instead."""
    whole, xml = facturx(), written("cii_invoice.xml")
    packed = re.search(rb"stream\n(\x78[^\n].*?)\nendstream", whole, re.DOTALL)
    assert packed is not None
    assert zlib.decompress(packed[1]) == xml
    for position in range(packed.start(1) + 2, packed.end(1), 17):
        flipped = bytearray(whole)
        flipped[position] ^= 0x10
        outcome = read_invoice("flipped.pdf", bytes(flipped))
        assert not isinstance(outcome, Invoice), position


def test_a_price_keeps_its_digits_whatever_the_threads_decimal_context():
    """A caller's low precision must not round somebody's invoice."""
    with localcontext(prec=2):
        assert fields.unit_price(Decimal("123.45"), "100") == Decimal("1.2345")
