"""UN/CEFACT CII: the CrossIndustryInvoice (D16B) and its older draft, the CrossIndustryDocument of ZUGFeRD 1.0.

The draft's names are brought to today's while the tree is read, so that there is one reader. Knows where CII keeps
each value, nothing else; `reading` calls it with a tree that `tree` has already made safe.
"""

from datetime import date
from decimal import Decimal

from ..model import Invoice, InvoiceFormat, Line, ReasonCode
from . import fields
from .refusal import Refusal, quoted
from .tree import Dialect, Node

_STANDARD = "urn:un:unece:uncefact:data:standard:"
_DRAFT = "urn:ferd:CrossIndustryDocument:invoice:1p0"
# One name on both levels, as the draft had it; which level is meant is clear from the path.
_SUMMATION = {
    "SpecifiedTradeSettlementHeaderMonetarySummation": "Summation",
    "SpecifiedTradeSettlementLineMonetarySummation": "Summation",
    "SpecifiedTradeSettlementMonetarySummation": "Summation",
}
_DRAFT_NAMES = _SUMMATION | {
    "HeaderExchangedDocument": "ExchangedDocument",
    "SpecifiedSupplyChainTradeTransaction": "SupplyChainTradeTransaction",
    "ApplicableSupplyChainTradeAgreement": "ApplicableHeaderTradeAgreement",
    "ApplicableSupplyChainTradeSettlement": "ApplicableHeaderTradeSettlement",
    "SpecifiedSupplyChainTradeAgreement": "SpecifiedLineTradeAgreement",
    "SpecifiedSupplyChainTradeDelivery": "SpecifiedLineTradeDelivery",
    "SpecifiedSupplyChainTradeSettlement": "SpecifiedLineTradeSettlement",
}

D16B = Dialect(f"{{{_STANDARD}CrossIndustryInvoice:100}}CrossIndustryInvoice", (_STANDARD,), _SUMMATION)
ZUGFERD_1 = Dialect(f"{{{_DRAFT}}}CrossIndustryDocument", (_DRAFT, _STANDARD), _DRAFT_NAMES)
DIALECTS = (D16B, ZUGFERD_1)

_DAY_FORMAT = "102"
_VAT_SCHEME = "VA"


def read(root: Node, source: str) -> Invoice:
    """Read a CII document.

    Raises:
        Refusal: a value is missing, malformed, or in another currency than the document.
    """
    document = _section(root, "ExchangedDocument")
    trade = _section(root, "SupplyChainTradeTransaction")
    agreement = _section(trade, "ApplicableHeaderTradeAgreement")
    settlement = _section(trade, "ApplicableHeaderTradeSettlement")
    currency = fields.currency_code(settlement, "InvoiceCurrencyCode")
    total = _section(settlement, "Summation")
    net = fields.amount(total, "a net total", "TaxBasisTotalAmount", currency)
    gross = fields.amount(total, "a gross total", "GrandTotalAmount", currency)
    tax = fields.amounts(total, "a tax total", "TaxTotalAmount", currency)
    return Invoice(
        number=fields.required(document, "an invoice number", "ID"),
        kind=fields.kind_of(fields.text(document, "TypeCode")),
        supplier=fields.required(agreement, "a supplier name", "SellerTradeParty/Name"),
        supplier_id=_supplier_id(agreement),
        issued=_issued(document),
        currency=currency,
        order_ref=fields.text(
            agreement, "BuyerOrderReferencedDocument/IssuerAssignedID", "BuyerOrderReferencedDocument/ID"
        ),
        lines=_lines(trade, currency),
        net_total=net,
        tax_total=fields.tax_total(tax, net=net, gross=gross, where="TaxTotalAmount"),
        gross_total=gross,
        payable=fields.amount(total, "a payable amount", "DuePayableAmount", currency),
        source=source,
        format=InvoiceFormat.CII,
        allowances=fields.amount_or_zero(total, "an allowance total", "AllowanceTotalAmount", currency),
        charges=fields.amount_or_zero(total, "a charge total", "ChargeTotalAmount", currency),
        prepaid=fields.amount_or_zero(total, "a prepaid amount", "TotalPrepaidAmount", currency),
        rounding=fields.amount_or_zero(total, "a rounding amount", "RoundingAmount", currency),
    )


def _section(node: Node, name: str) -> Node:
    section = node.first(name)
    if section is None:
        raise fields.missing("a section", node, name)
    return section


def _issued(document: Node) -> date:
    what = "an issue date"
    written = document.first("IssueDateTime/DateTimeString")
    if written is None or not written.text:
        raise fields.missing(what, document, "IssueDateTime/DateTimeString")
    style = written.attributes.get("format", _DAY_FORMAT)
    if style != _DAY_FORMAT:
        raise Refusal(ReasonCode.INVALID, expected=f"{what} of format {_DAY_FORMAT}", found=f"format {quoted(style)}")
    return fields.compact_day(written.text, what)


def _supplier_id(agreement: Node) -> str:
    """Prefer the VAT number, then what else identifies the supplier; a supplier without any id is legal."""
    seller = agreement.first("SellerTradeParty") or agreement
    for registered in seller.all("SpecifiedTaxRegistration/ID"):
        if registered.attributes.get("schemeID") == _VAT_SCHEME and registered.text:
            return registered.text
    paths = ("URIUniversalCommunication/URIID", "GlobalID", "ID")
    return fields.text(seller, *paths, "SpecifiedLegalOrganization/ID", "SpecifiedTaxRegistration/ID") or ""


def _lines(trade: Node, currency: str) -> tuple[Line, ...]:
    lines = tuple(_line(node, currency) for node in trade.all("IncludedSupplyChainTradeLineItem"))
    if not lines:
        raise Refusal(
            ReasonCode.INCOMPLETE,
            expected="at least one line (a Factur-X profile from BASIC upwards)",
            found="none, as in the profiles MINIMUM and BASIC WL",
        )
    return lines


def _line(node: Node, currency: str) -> Line:
    line_id = fields.required(node, "a line number", "AssociatedDocumentLineDocument/LineID")
    where = f"of line {line_id}"
    billed = node.first("SpecifiedLineTradeDelivery/BilledQuantity")
    if billed is None:
        raise fields.missing(f"a quantity {where}", node, "SpecifiedLineTradeDelivery/BilledQuantity")
    net_path = "SpecifiedLineTradeSettlement/Summation/LineTotalAmount"
    name = fields.required(
        node, f"an item name {where}", "SpecifiedTradeProduct/Name", "SpecifiedTradeProduct/Description"
    )
    return Line(
        number=line_id,
        item=_item_id(node) or name,
        description=name,
        quantity=fields.number(billed.text, f"a quantity {where}"),
        unit=billed.attributes.get("unitCode", ""),
        unit_price=_unit_price(node, where, currency),
        net=fields.amount(node, f"a net amount {where}", net_path, currency),
        order_ref=fields.text(node, "SpecifiedLineTradeAgreement/BuyerOrderReferencedDocument/LineID"),
    )


def _unit_price(node: Node, where: str, currency: str) -> Decimal:
    price = "SpecifiedLineTradeAgreement/NetPriceProductTradePrice"
    charged = fields.amount(node, f"a price {where}", f"{price}/ChargeAmount", currency)
    return fields.unit_price(charged, fields.text(node, f"{price}/BasisQuantity"))


def _item_id(node: Node) -> str | None:
    kinds = ("SellerAssignedID", "BuyerAssignedID", "GlobalID")
    return fields.text(node, *(f"SpecifiedTradeProduct/{kind}" for kind in kinds))
