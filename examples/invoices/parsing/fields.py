"""Values out of nodes: texts, amounts in the document's currency, days, prices, each checked and named if refused.

Nothing is guessed: a value that is missing, malformed, given twice or in another currency refuses the invoice. Knows
no format; `ubl` and `cii` bring the paths.
"""

import re
from datetime import date
from decimal import Context, Decimal

from ..model import ZERO, InvoiceKind, ReasonCode
from .refusal import Refusal, quoted
from .tree import Node

TEXT_CHARS_MAX = 1_000
DIGITS_MAX = 30

# xs:decimal: no exponent, no NaN, no infinity, ASCII digits only; Decimal() alone would take all of them.
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
# xs:date may carry a zone, which says nothing about the day printed on the invoice.
_ISO_DAY = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:Z|[+-][0-9]{2}:[0-9]{2})?")
_COMPACT_DAY = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})")
_CURRENCY = re.compile(r"[A-Z]{3}")
# UNTDID 1001: the document types that give money back (EN 16931, code list for BT-3).
_CREDIT_NOTE_TYPES = frozenset({"81", "83", "261", "262", "296", "308", "381", "396", "420", "458", "532"})
# The thread's own decimal context must not decide what an invoice says.
_PRICE_CONTEXT = Context(prec=28)


def text(node: Node, *paths: str) -> str | None:
    """Give the first non-empty text at any of the paths, tried in order."""
    for path in paths:
        for found in node.all(path):
            if found.text:
                return _bounded(found.text, path)
    return None


def required(node: Node, what: str, *paths: str) -> str:
    """Give the text at one of the paths; refuse the invoice when there is none."""
    found = text(node, *paths)
    if found is None:
        raise missing(what, node, " or ".join(paths))
    return found


def missing(what: str, node: Node, path: str) -> Refusal:
    """Say which value an invoice lacks, and where it was looked for."""
    return Refusal(ReasonCode.INCOMPLETE, expected=f"{what} at {node.name}/{path}", found="none")


def currency_code(node: Node, path: str) -> str:
    """Give the document's currency, three capital letters (ISO 4217)."""
    code = required(node, "a currency", path)
    if not _CURRENCY.fullmatch(code):
        raise Refusal(ReasonCode.INVALID, expected="a currency of three letters", found=quoted(code))
    return code


def kind_of(type_code: str | None) -> InvoiceKind:
    """Tell a credit note from an invoice by its UNTDID 1001 code."""
    return InvoiceKind.CREDIT_NOTE if type_code in _CREDIT_NOTE_TYPES else InvoiceKind.INVOICE


def number(written: str, what: str) -> Decimal:
    """Read an xs:decimal, digits kept as written."""
    if not _DECIMAL.fullmatch(written) or len(written) > DIGITS_MAX:
        raise Refusal(
            ReasonCode.INVALID, expected=f"{what} as a number of at most {DIGITS_MAX} digits", found=quoted(written)
        )
    return Decimal(written)


def amounts(node: Node, what: str, path: str, currency: str) -> list[Decimal]:
    """Give every amount at a path that is in the document's currency; an amount without a currency counts as such.

    A document may state a total a second time in its tax currency; only that one may be in another currency.
    """
    stated = [found for found in node.all(path) if found.text]
    ours = [found for found in stated if found.attributes.get("currencyID", currency) == currency]
    if stated and not ours:
        foreign = stated[0].attributes["currencyID"]
        raise Refusal(ReasonCode.INVALID, expected=f"{what} in {currency}", found=f"it in {quoted(foreign)}")
    return [number(found.text, what) for found in ours]


def amount(node: Node, what: str, path: str, currency: str) -> Decimal:
    """Give the one amount at a path; refuse when it is missing or stated twice."""
    found = amounts(node, what, path, currency)
    if not found:
        raise missing(what, node, path)
    if len(found) > 1:
        raise Refusal(ReasonCode.INVALID, expected=f"{what} once", found=f"it {len(found)} times")
    return found[0]


def amount_or_zero(node: Node, what: str, path: str, currency: str) -> Decimal:
    """Give the one amount at a path, zero when the document does not state it."""
    return amount(node, what, path, currency) if text(node, path) else ZERO


def tax_total(found: list[Decimal], *, net: Decimal, gross: Decimal, where: str) -> Decimal:
    """Add up the tax; a document may leave it out (EN 16931 BT-110) only if the totals leave no room for any."""
    if not found and net != gross:
        raise Refusal(ReasonCode.INCOMPLETE, expected=f"a tax total at {where}", found="none")
    return sum(found, ZERO)


def unit_price(price: Decimal, base: str | None) -> Decimal:
    """Bring a price for a base quantity (per 100, say) down to one unit."""
    quantity = number(base, "a price base quantity") if base else Decimal(1)
    if quantity <= 0:
        raise Refusal(ReasonCode.INVALID, expected="a price base quantity above zero", found=str(quantity))
    return price if quantity == 1 else _PRICE_CONTEXT.divide(price, quantity)


def iso_day(written: str, what: str) -> date:
    """Read an xs:date such as 2026-10-31 or 2026-10-31+01:00."""
    return _day(_ISO_DAY.fullmatch(written), written, what)


def compact_day(written: str, what: str) -> date:
    """Read a UN/CEFACT date of format 102 such as 20261031."""
    return _day(_COMPACT_DAY.fullmatch(written), written, what)


def _day(match: re.Match[str] | None, written: str, what: str) -> date:
    try:
        year, month, day = (int(part) for part in match.groups()) if match else (0, 0, 0)
        return date(year, month, day)
    except ValueError as error:
        raise Refusal(ReasonCode.INVALID, expected=f"{what} as a day", found=quoted(written)) from error


def _bounded(found: str, path: str) -> str:
    if len(found) > TEXT_CHARS_MAX:
        raise Refusal(
            ReasonCode.TOO_LARGE, expected=f"at most {TEXT_CHARS_MAX:,} characters at {path}", found=f"{len(found):,}"
        )
    return found
