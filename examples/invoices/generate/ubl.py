"""Writes an invoice as UBL 2.1, Invoice or CreditNote, in the profile of EN 16931. Pure."""

from __future__ import annotations

from xml.etree import ElementTree

from invoices.generate.catalogue import BUYER_NAME, BUYER_VAT_ID
from invoices.generate.plants import VAT_PERCENT
from invoices.generate.tree import Element, el, xml_bytes
from invoices.model import Invoice, InvoiceKind, Line

CUSTOMIZATION = "urn:cen.eu:en16931:2017#compliant#urn:fdc:peppol.eu:2017:poacc:billing:3.0"
PROFILE = "urn:fdc:peppol.eu:2017:poacc:billing:01:1.0"


def ubl_bytes(invoice: Invoice) -> bytes:
    """Give the whole document."""
    name = "CreditNote" if invoice.kind is InvoiceKind.CREDIT_NOTE else "Invoice"
    namespace = f"urn:oasis:names:specification:ubl:schema:xsd:{name}-2"
    ElementTree.register_namespace("", namespace)
    root = Element(f"{{{namespace}}}{name}")
    _head(root, invoice, name)
    _party(root, "cac:AccountingSupplierParty", invoice.supplier, invoice.supplier_id)
    _party(root, "cac:AccountingCustomerParty", BUYER_NAME, BUYER_VAT_ID)
    _totals(root, invoice)
    for line in invoice.lines:
        _line(root, invoice, line, name)
    return xml_bytes(root)


def _head(root: Element, invoice: Invoice, name: str) -> None:
    el(root, "cbc:CustomizationID", CUSTOMIZATION)
    el(root, "cbc:ProfileID", PROFILE)
    el(root, "cbc:ID", invoice.number)
    el(root, "cbc:IssueDate", invoice.issued.isoformat())
    el(root, f"cbc:{name}TypeCode", "381" if name == "CreditNote" else "380")
    el(root, "cbc:DocumentCurrencyCode", invoice.currency)
    if invoice.order_ref is not None:
        el(root, "cac:OrderReference/cbc:ID", invoice.order_ref)


def _party(root: Element, role: str, name: str, vat_id: str) -> None:
    party = el(el(root, role), "cac:Party")
    el(party, "cbc:EndpointID", vat_id, schemeID="9930")
    el(party, "cac:PartyName/cbc:Name", name)
    el(party, "cac:PostalAddress/cac:Country/cbc:IdentificationCode", vat_id[:2])
    el(party, "cac:PartyTaxScheme/cbc:CompanyID", vat_id)
    el(party, "cac:PartyTaxScheme/cac:TaxScheme/cbc:ID", "VAT")
    el(party, "cac:PartyLegalEntity/cbc:RegistrationName", name)


def _totals(root: Element, invoice: Invoice) -> None:
    currency = invoice.currency
    tax = el(root, "cac:TaxTotal")
    el(tax, "cbc:TaxAmount", invoice.tax_total, currencyID=currency)
    el(tax, "cac:TaxSubtotal/cbc:TaxableAmount", invoice.net_total, currencyID=currency)
    el(tax, "cac:TaxSubtotal/cbc:TaxAmount", invoice.tax_total, currencyID=currency)
    _tax_category(el(tax, "cac:TaxSubtotal/cac:TaxCategory"))
    total = el(root, "cac:LegalMonetaryTotal")
    el(total, "cbc:LineExtensionAmount", invoice.net_total, currencyID=currency)
    el(total, "cbc:TaxExclusiveAmount", invoice.net_total, currencyID=currency)
    el(total, "cbc:TaxInclusiveAmount", invoice.gross_total, currencyID=currency)
    el(total, "cbc:PayableAmount", invoice.payable, currencyID=currency)


def _line(root: Element, invoice: Invoice, line: Line, name: str) -> None:
    made = el(root, f"cac:{name}Line")
    el(made, "cbc:ID", line.number)
    quantity = "CreditedQuantity" if name == "CreditNote" else "InvoicedQuantity"
    el(made, f"cbc:{quantity}", line.quantity, unitCode=line.unit)
    el(made, "cbc:LineExtensionAmount", line.net, currencyID=invoice.currency)
    el(made, "cac:Item/cbc:Name", line.description)
    el(made, "cac:Item/cac:SellersItemIdentification/cbc:ID", line.item)
    _tax_category(el(made, "cac:Item/cac:ClassifiedTaxCategory"))
    el(made, "cac:Price/cbc:PriceAmount", line.unit_price, currencyID=invoice.currency)


def _tax_category(category: Element) -> None:
    el(category, "cbc:ID", "S")
    el(category, "cbc:Percent", VAT_PERCENT)
    el(category, "cac:TaxScheme/cbc:ID", "VAT")
