"""Writes an invoice as UN/CEFACT Cross Industry Invoice (D16B), in the profile of EN 16931. Pure."""

from __future__ import annotations

from invoices.generate.catalogue import BUYER_NAME, BUYER_VAT_ID
from invoices.generate.plants import VAT_PERCENT
from invoices.generate.tree import Element, el, tag, xml_bytes
from invoices.model import Invoice, InvoiceKind, Line

GUIDELINE = "urn:cen.eu:en16931:2017"


def cii_bytes(invoice: Invoice) -> bytes:
    """Give the whole document."""
    root = Element(tag("rsm:CrossIndustryInvoice"))
    el(
        root,
        "rsm:ExchangedDocumentContext/ram:GuidelineSpecifiedDocumentContextParameter/ram:ID",
        GUIDELINE,
    )
    document = el(root, "rsm:ExchangedDocument")
    el(document, "ram:ID", invoice.number)
    el(document, "ram:TypeCode", "381" if invoice.kind is InvoiceKind.CREDIT_NOTE else "380")
    el(document, "ram:IssueDateTime/udt:DateTimeString", f"{invoice.issued:%Y%m%d}", format="102")
    transaction = el(root, "rsm:SupplyChainTradeTransaction")
    for line in invoice.lines:
        _line(transaction, line)
    _agreement(el(transaction, "ram:ApplicableHeaderTradeAgreement"), invoice)
    el(transaction, "ram:ApplicableHeaderTradeDelivery")
    _settlement(el(transaction, "ram:ApplicableHeaderTradeSettlement"), invoice)
    return xml_bytes(root)


def _line(transaction: Element, line: Line) -> None:
    made = el(transaction, "ram:IncludedSupplyChainTradeLineItem")
    el(made, "ram:AssociatedDocumentLineDocument/ram:LineID", line.number)
    el(made, "ram:SpecifiedTradeProduct/ram:SellerAssignedID", line.item)
    el(made, "ram:SpecifiedTradeProduct/ram:Name", line.description)
    price = "ram:SpecifiedLineTradeAgreement/ram:NetPriceProductTradePrice/ram:ChargeAmount"
    el(made, price, line.unit_price)
    el(made, "ram:SpecifiedLineTradeDelivery/ram:BilledQuantity", line.quantity, unitCode=line.unit)
    settlement = el(made, "ram:SpecifiedLineTradeSettlement")
    _tax_category(el(settlement, "ram:ApplicableTradeTax"))
    el(settlement, "ram:SpecifiedTradeSettlementLineMonetarySummation/ram:LineTotalAmount", line.net)


def _agreement(agreement: Element, invoice: Invoice) -> None:
    _party(agreement, "ram:SellerTradeParty", invoice.supplier, invoice.supplier_id)
    _party(agreement, "ram:BuyerTradeParty", BUYER_NAME, BUYER_VAT_ID)
    if invoice.order_ref is not None:
        el(agreement, "ram:BuyerOrderReferencedDocument/ram:IssuerAssignedID", invoice.order_ref)


def _party(agreement: Element, role: str, name: str, vat_id: str) -> None:
    party = el(agreement, role)
    el(party, "ram:Name", name)
    el(party, "ram:PostalTradeAddress/ram:CountryID", vat_id[:2])
    el(party, "ram:SpecifiedTaxRegistration/ram:ID", vat_id, schemeID="VA")


def _settlement(settlement: Element, invoice: Invoice) -> None:
    el(settlement, "ram:InvoiceCurrencyCode", invoice.currency)
    tax = el(settlement, "ram:ApplicableTradeTax")
    el(tax, "ram:CalculatedAmount", invoice.tax_total)
    el(tax, "ram:TypeCode", "VAT")
    el(tax, "ram:BasisAmount", invoice.net_total)
    el(tax, "ram:CategoryCode", "S")
    el(tax, "ram:RateApplicablePercent", VAT_PERCENT)
    total = el(settlement, "ram:SpecifiedTradeSettlementHeaderMonetarySummation")
    el(total, "ram:LineTotalAmount", invoice.net_total)
    el(total, "ram:TaxBasisTotalAmount", invoice.net_total)
    el(total, "ram:TaxTotalAmount", invoice.tax_total, currencyID=invoice.currency)
    el(total, "ram:GrandTotalAmount", invoice.gross_total)
    el(total, "ram:DuePayableAmount", invoice.payable)


def _tax_category(tax: Element) -> None:
    el(tax, "ram:TypeCode", "VAT")
    el(tax, "ram:CategoryCode", "S")
    el(tax, "ram:RateApplicablePercent", VAT_PERCENT)
