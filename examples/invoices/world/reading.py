"""The rules by which the stand-in model reads an invoice from plain text.

Pure. It takes what stands between the document marks of a prompt and gives the fields that `extraction` asks
for; what it cannot find it leaves out, as a model might, and the validation there says so.
"""

from __future__ import annotations

import re
from typing import Any

DOCUMENT = re.compile(r"<document>(.*)</document>", re.DOTALL)
LABELS = {
    "number": re.compile(r"^(?:Invoice|Credit note) number:\s*(\S+)", re.MULTILINE),
    "issued": re.compile(r"^Date:\s*(\d{4}-\d{2}-\d{2})", re.MULTILINE),
    "order_ref": re.compile(r"^Purchase order:\s*(\S+)", re.MULTILINE),
    "currency": re.compile(r"^Currency:\s*([A-Z]{3})", re.MULTILINE),
    "supplier": re.compile(r"^Supplier:\s*(.+?)\s*$", re.MULTILINE),
    "supplier_id": re.compile(r"^VAT id:\s*(\S+)", re.MULTILINE),
    "net_total": re.compile(r"^Net total:\s*(-?[\d.]+)", re.MULTILINE),
    "tax_total": re.compile(r"^VAT [\d.]+ %:\s*(-?[\d.]+)", re.MULTILINE),
    "gross_total": re.compile(r"^Total:\s*(-?[\d.]+)", re.MULTILINE),
    "payable": re.compile(r"^Amount due:\s*(-?[\d.]+)", re.MULTILINE),
}
ROW = re.compile(
    r"^(?P<number>\d+)\s+(?P<item>\S+)\s+(?P<description>.+?)\s+(?P<quantity>-?[\d.]+)\s+(?P<unit>[A-Z0-9]{3})\s+"
    r"(?P<unit_price>-?[\d.]+)\s+(?P<net>-?[\d.]+)\s*$",
    re.MULTILINE,
)


def invoice_fields(prompt: str) -> dict[str, Any]:
    """Give the fields found in the prompt's document as JSON values; amounts stay text, as written."""
    marked = DOCUMENT.search(prompt)
    text = marked[1] if marked else prompt
    found: dict[str, Any] = {"kind": "credit_note" if "\nCredit note number:" in text else "invoice"}
    for name, label in LABELS.items():
        match = label.search(text)
        if match:
            found[name] = match[1]
    found["lines"] = [row.groupdict() for row in ROW.finditer(text)]
    return found
