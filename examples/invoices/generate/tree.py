"""Writes XML elements by path, so that the two invoice formats read like their own documentation.

Pure. `el(parent, "cac:Party/cbc:Name", "…")` makes what is missing on the way and always a new last element.
"""

from __future__ import annotations

from xml.etree import ElementTree

NAMESPACES = {
    "cac": "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2",
    "cbc": "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2",
    "rsm": "urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100",
    "ram": "urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:100",
    "udt": "urn:un:unece:uncefact:data:standard:UnqualifiedDataType:100",
}
for _prefix, _uri in NAMESPACES.items():
    ElementTree.register_namespace(_prefix, _uri)

Element = ElementTree.Element


def el(parent: Element, path: str, text: object = "", **attributes: str) -> Element:
    """Append an element at the end of `path` under `parent`, and give it."""
    *way, last = path.split("/")
    for name in way:
        found = parent.find(tag(name))
        parent = found if found is not None else ElementTree.SubElement(parent, tag(name))
    made = ElementTree.SubElement(parent, tag(last), attributes)
    made.text = str(text) or None
    return made


def tag(name: str) -> str:
    """Give the full name of `prefix:Name`."""
    prefix, _, local = name.partition(":")
    return f"{{{NAMESPACES[prefix]}}}{local}"


def xml_bytes(root: Element) -> bytes:
    """Give the document as UTF-8 with a declaration, indented."""
    ElementTree.indent(root)
    content: bytes = ElementTree.tostring(root, encoding="utf-8")
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + content + b"\n"
