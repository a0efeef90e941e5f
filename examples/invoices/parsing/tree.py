"""The hardened XML reader: bytes in, a small tree of plain nodes out.

No DTD, no entities but the five of XML itself, no network, and a bound on size, depth and elements. Each bound is
checked while the parser runs, so that a bomb is dropped and not built first. Only elements of the document's own
dialect are kept, by local name; extensions and signatures fall away. `ubl` and `cii` read the nodes.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from lxml import etree

from ..model import ReasonCode
from .refusal import Refusal, quoted

XML_BYTES_MAX = 10_000_000
DEPTH_MAX = 40
ELEMENTS_MAX = 200_000


@dataclass(frozen=True, slots=True)
class Dialect:
    """One document type: its root in Clark notation, the namespaces it is made of, older names and their new ones."""

    root: str
    namespaces: tuple[str, ...]
    renamed: Mapping[str, str] = field(default_factory=dict)

    def local(self, tag: str) -> str | None:
        """Give the name by which we know this element, or None for an element of a foreign vocabulary."""
        namespace, _, name = tag.rpartition("}")
        if not namespace[1:].startswith(self.namespaces):
            return None
        return self.renamed.get(name, name)


@dataclass(slots=True)
class Node:
    """One element: its own text without that of its children, whitespace folded."""

    name: str
    attributes: dict[str, str]
    children: list["Node"] = field(default_factory=list)
    text: str = ""

    def all(self, path: str) -> Iterator["Node"]:
        """Walk every node at a path like `Party/PartyName/Name`, in document order."""
        step, _, rest = path.partition("/")
        for child in self.children:
            if child.name == step:
                yield from child.all(rest) if rest else (child,)

    def first(self, path: str) -> "Node | None":
        """Give the first node at a path, or None."""
        return next(self.all(path), None)


def read_tree(data: bytes, dialects: Iterable[Dialect]) -> tuple[Dialect, Node]:
    """Parse XML bytes into the dialect that its root names and the nodes of that dialect.

    Raises:
        Refusal: too large, hostile, of no known dialect, or not well-formed.
    """
    if len(data) > XML_BYTES_MAX:
        raise Refusal(
            ReasonCode.TOO_LARGE, expected=f"XML of at most {XML_BYTES_MAX:,} bytes", found=f"{len(data):,} bytes"
        )
    guard = _Guard(dialects)
    try:
        etree.fromstring(data, _parser(guard))
    # ValueError and LookupError: names and encodings that lxml cannot turn into text.
    except (etree.LxmlError, ValueError, LookupError) as error:
        problem = quoted(str(getattr(error, "msg", error)))
        raise Refusal(ReasonCode.DAMAGED, expected="well-formed XML", found=f"an XML error: {problem}") from error
    return guard.finished()


def _parser(guard: "_Guard") -> etree.XMLParser:
    """Build the strictest parser lxml has; the guard refuses what its options only ignore."""
    return etree.XMLParser(
        target=guard,
        resolve_entities=False,
        load_dtd=False,
        dtd_validation=False,
        attribute_defaults=False,
        no_network=True,
        huge_tree=False,
        recover=False,
        decompress=False,
    )


class _Guard:
    """The parser's target: builds nodes of one dialect and refuses the rest while it is still being read."""

    def __init__(self, dialects: Iterable[Dialect]) -> None:
        self._by_root = {dialect.root: dialect for dialect in dialects}
        self._dialect: Dialect | None = None
        self._root: Node | None = None
        self._open: list[tuple[Node, list[str]]] = []
        self._foreign_depth = 0
        self._element_count = 0

    def doctype(self, name: str, public_id: str | None, system_id: str | None) -> None:
        """Refuse every DOCTYPE: it is where entity bombs and external files begin, and no invoice needs one."""
        if name.lower() == "html":
            raise Refusal(ReasonCode.UNKNOWN_FORMAT, expected="an invoice", found="an HTML page")
        raise Refusal(ReasonCode.HOSTILE, expected="XML without a DOCTYPE", found=f"a DOCTYPE {quoted(name)}")

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Open an element, within the bounds."""
        self._count_element()
        dialect = self._dialect or self._recognise(tag)
        name = None if self._foreign_depth else dialect.local(tag)
        if name is None:
            self._foreign_depth += 1
            return
        node = Node(name, dict(attributes))
        if self._open:
            self._open[-1][0].children.append(node)
        else:
            self._root = node
        self._open.append((node, []))

    def end(self, tag: str) -> None:
        """Close the innermost element."""
        if self._foreign_depth:
            self._foreign_depth -= 1
            return
        node, parts = self._open.pop()
        node.text = " ".join("".join(parts).split())

    def data(self, text: str) -> None:
        """Collect character data; one text may come in many calls."""
        if not self._foreign_depth:
            self._open[-1][1].append(text)

    def close(self) -> None:
        """End the document. Raises nothing: it is also called after an error and would hide it."""

    def finished(self) -> tuple[Dialect, Node]:
        """Give what was built, after a parse without an error."""
        if self._dialect is None or self._root is None:
            raise Refusal(ReasonCode.DAMAGED, expected="an XML document", found="no root element")
        return self._dialect, self._root

    def _recognise(self, root: str) -> Dialect:
        dialect = self._by_root.get(root)
        if dialect is None:
            raise Refusal(
                ReasonCode.UNKNOWN_FORMAT,
                expected="a UBL Invoice or CreditNote, or a UN/CEFACT CrossIndustryInvoice",
                found=f"an XML document {quoted(root)}",
            )
        self._dialect = dialect
        return dialect

    def _count_element(self) -> None:
        self._element_count += 1
        if self._element_count > ELEMENTS_MAX:
            raise Refusal(ReasonCode.HOSTILE, expected=f"at most {ELEMENTS_MAX:,} XML elements", found="more")
        if len(self._open) + self._foreign_depth >= DEPTH_MAX:
            raise Refusal(ReasonCode.HOSTILE, expected=f"XML at most {DEPTH_MAX} elements deep", found="deeper nesting")
