"""UBL 2.1: the Invoice and CreditNote documents of OASIS, as EN 16931 and Peppol use them.

Knows where UBL keeps each value, nothing else; `reading` calls it with a tree that `tree` has already made safe.
"""

from ..model import Invoice, InvoiceFormat, InvoiceKind, Line, ReasonCode
from . import fields
from .refusal import Refusal
from .tree import Dialect, Node

_SCHEMA = "urn:oasis:names:specification:ubl:schema:xsd:"
_COMPONENTS = (f"{_SCHEMA}CommonAggregateComponents-2", f"{_SCHEMA}CommonBasicComponents-2")

INVOICE = Dialect(f"{{{_SCHEMA}Invoice-2}}Invoice", (f"{_SCHEMA}Invoice-2", *_COMPONENTS))
CREDIT_NOTE = Dialect(f"{{{_SCHEMA}CreditNote-2}}CreditNote", (f"{_SCHEMA}CreditNote-2", *_COMPONENTS))
DIALECTS = (INVOICE, CREDIT_NOTE)

# Peppol asks for this order id when there is a sales order but no purchase order.
_NO_ORDER = "NA"


def read(root: Node, source: str) -> Invoice:
    """Read a UBL document.

    Raises:
        Refusal: a value is missing, malformed, or in another currency than the document.
    """
    currency = fields.currency_code(root, "DocumentCurrencyCode")
    total = root.first("LegalMonetaryTotal")
    if total is None:
        raise fields.missing("the totals", root, "LegalMonetaryTotal")
    net = fields.amount(total, "a net total", "TaxExclusiveAmount", currency)
    gross = fields.amount(total, "a gross total", "TaxInclusiveAmount", currency)
    tax = fields.amounts(root, "a tax total", "TaxTotal/TaxAmount", currency)
    return Invoice(
        number=fields.required(root, "an invoice number", "ID"),
        kind=_kind(root),
        supplier=_supplier(root),
        supplier_id=_supplier_id(root),
        issued=fields.iso_day(fields.required(root, "an issue date", "IssueDate"), "an issue date"),
        currency=currency,
        order_ref=_order_ref(root),
        lines=_lines(root, currency),
        net_total=net,
        tax_total=fields.tax_total(tax, net=net, gross=gross, where="TaxTotal/TaxAmount"),
        gross_total=gross,
        payable=fields.amount(total, "a payable amount", "PayableAmount", currency),
        source=source,
        format=InvoiceFormat.UBL,
        allowances=fields.amount_or_zero(total, "an allowance total", "AllowanceTotalAmount", currency),
        charges=fields.amount_or_zero(total, "a charge total", "ChargeTotalAmount", currency),
        prepaid=fields.amount_or_zero(total, "a prepaid amount", "PrepaidAmount", currency),
        rounding=fields.amount_or_zero(total, "a rounding amount", "PayableRoundingAmount", currency),
    )


def _kind(root: Node) -> InvoiceKind:
    if root.name == "CreditNote":
        return InvoiceKind.CREDIT_NOTE
    return fields.kind_of(fields.text(root, "InvoiceTypeCode"))


def _supplier(root: Node) -> str:
    party = "AccountingSupplierParty/Party"
    return fields.required(
        root, "a supplier name", f"{party}/PartyLegalEntity/RegistrationName", f"{party}/PartyName/Name"
    )


def _supplier_id(root: Node) -> str:
    """Prefer the VAT number, then what else identifies the supplier; a supplier without any id is legal."""
    party = root.first("AccountingSupplierParty/Party") or root
    for scheme in party.all("PartyTaxScheme"):
        if fields.text(scheme, "TaxScheme/ID") == "VAT" and (vat := fields.text(scheme, "CompanyID")):
            return vat
    paths = ("EndpointID", "PartyIdentification/ID", "PartyLegalEntity/CompanyID", "PartyTaxScheme/CompanyID")
    return fields.text(party, *paths) or ""


def _order_ref(root: Node) -> str | None:
    order = fields.text(root, "OrderReference/ID")
    return None if order == _NO_ORDER else order


def _lines(root: Node, currency: str) -> tuple[Line, ...]:
    lines = tuple(_line(node, currency) for node in root.all(f"{root.name}Line"))
    if not lines:
        raise Refusal(ReasonCode.INCOMPLETE, expected=f"at least one {root.name}Line", found="none")
    return lines


def _line(node: Node, currency: str) -> Line:
    line_id = fields.required(node, "a line number", "ID")
    where = f"of line {line_id}"
    quantity = node.first("InvoicedQuantity") or node.first("CreditedQuantity")
    if quantity is None:
        raise fields.missing(f"a quantity {where}", node, "InvoicedQuantity or CreditedQuantity")
    price = fields.amount(node, f"a price {where}", "Price/PriceAmount", currency)
    name = fields.required(node, f"an item name {where}", "Item/Name", "Item/Description")
    return Line(
        number=line_id,
        item=_item_id(node) or name,
        description=name,
        quantity=fields.number(quantity.text, f"a quantity {where}"),
        unit=quantity.attributes.get("unitCode", ""),
        unit_price=fields.unit_price(price, fields.text(node, "Price/BaseQuantity")),
        net=fields.amount(node, f"a net amount {where}", "LineExtensionAmount", currency),
        order_ref=fields.text(node, "OrderLineReference/LineID"),
    )


def _item_id(node: Node) -> str | None:
    kinds = ("SellersItemIdentification", "BuyersItemIdentification", "StandardItemIdentification")
    return fields.text(node, *(f"Item/{kind}/ID" for kind in kinds))
