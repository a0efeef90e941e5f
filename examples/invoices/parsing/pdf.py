"""The hardened PDF reader: the embedded invoice XML of a Factur-X/ZUGFeRD file, else the text of its pages.

Everything pypdf does happens inside `_contained`, with a bound on what it may unpack; each of its failures becomes a
refusal, and it is kept from writing to the log. Never decrypts, never runs or writes what a file embeds.
"""

import itertools
import logging
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO

from pypdf import Configuration, PdfReader, apply_configuration
from pypdf.errors import DependencyError, LimitReachedError
from pypdf.generic import EmbeddedFile, PdfObject

from ..model import ReasonCode
from .refusal import Refusal, quoted
from .tree import XML_BYTES_MAX

PDF_BYTES_MAX = 30_000_000
PAGES_MAX = 50
TEXT_CHARS_MAX = 100_000
ATTACHMENTS_MAX = 100
HEADER_WITHIN_BYTES = 1_024
TRAILER_WITHIN_BYTES = 1_024

# Factur-X 1.0, ZUGFeRD 2.0 and 1.0, XRechnung in a PDF; compared without regard to case.
ATTACHMENT_NAMES = frozenset({"factur-x.xml", "zugferd-invoice.xml", "xrechnung.xml"})

_LIMITS = Configuration(
    maximum_declared_stream_length=PDF_BYTES_MAX,
    array_based_stream_maximum_output_length=XML_BYTES_MAX,
    lzw_maximum_output_length=XML_BYTES_MAX,
    run_length_maximum_output_length=XML_BYTES_MAX,
    zlib_maximum_output_length=XML_BYTES_MAX,
    zlib_maximum_recovery_input_length=100_000,
    brotli_maximum_output_length=XML_BYTES_MAX,
    stream_decoding_work_maximum_length=3 * XML_BYTES_MAX,
    stream_parsing_work_maximum_count=500_000,
    page_tree_maximum_entries=10_000,
    xform_maximum_invocations_per_extraction=500,
    jbig2dec_binary=None,
)

# It reports each repaired oddity of each file; our outcome says what matters.
logging.getLogger("pypdf").setLevel(logging.CRITICAL + 1)


@dataclass(frozen=True, slots=True)
class PdfContent:
    """What a PDF brings: the invoice XML it embeds, or else its pages' text."""

    xml: bytes | None
    text: str = ""


def looks_like_pdf(data: bytes) -> bool:
    """Tell whether a PDF header stands near the beginning, where readers look for it."""
    return b"%PDF-" in data[:HEADER_WITHIN_BYTES]


def read_pdf(data: bytes) -> PdfContent:
    """Read a PDF's embedded invoice XML, or its text where it embeds none.

    Raises:
        Refusal: too large, truncated, damaged, encrypted, ambiguous, or with neither XML nor text.
    """
    _check_ends(data)
    with _contained():
        reader = PdfReader(BytesIO(data))
        if reader.is_encrypted:
            raise _encrypted()
        xml = _embedded_xml(reader)
        return PdfContent(xml) if xml is not None else PdfContent(None, _text(reader))


def _check_ends(data: bytes) -> None:
    """Refuse what cannot be a whole file: a repair would find some of its attachments and lose others."""
    if len(data) > PDF_BYTES_MAX:
        raise Refusal(
            ReasonCode.TOO_LARGE, expected=f"a PDF of at most {PDF_BYTES_MAX:,} bytes", found=f"{len(data):,} bytes"
        )
    if b"%%EOF" not in data[-TRAILER_WITHIN_BYTES:]:
        raise Refusal(ReasonCode.DAMAGED, expected="a whole PDF ending in %%EOF", found="one that is cut off")


@contextmanager
def _contained() -> Iterator[None]:
    """Run pypdf within the limits and translate its failures; the only place that knows its exceptions."""
    try:
        with apply_configuration(_LIMITS):
            yield
    except Refusal:
        raise
    except (LimitReachedError, MemoryError) as error:
        raise Refusal(
            ReasonCode.TOO_LARGE,
            expected=f"streams that unpack to at most {XML_BYTES_MAX:,} bytes",
            found="a PDF that asks for more",
        ) from error
    # A broken file makes pypdf fail in whatever way Python does on its parts: there is no closed list to name.
    except Exception as error:
        raise _translated(error) from error


def _translated(error: Exception) -> Refusal:
    # Without its crypto extra, pypdf meets AES before it can say that the file is encrypted.
    if isinstance(error, DependencyError) and "AES" in str(error):
        return _encrypted()
    problem = f"{type(error).__name__} {quoted(str(error))}"
    return Refusal(ReasonCode.DAMAGED, expected="a readable PDF", found=problem)


def _encrypted() -> Refusal:
    return Refusal(ReasonCode.ENCRYPTED, expected="a PDF without encryption", found="an encrypted one")


def _embedded_xml(reader: PdfReader) -> bytes | None:
    attached = list(itertools.islice(reader.attachment_list, ATTACHMENTS_MAX + 1))
    if len(attached) > ATTACHMENTS_MAX:
        raise Refusal(ReasonCode.TOO_LARGE, expected=f"at most {ATTACHMENTS_MAX} attachments", found="more")
    invoices = [entry for entry in attached if _is_invoice(entry)]
    if len(invoices) > 1:
        raise Refusal(ReasonCode.INVALID, expected="one embedded invoice", found=f"{len(invoices)} of them")
    return _unpacked(invoices[0]) if invoices else None


def _is_invoice(entry: EmbeddedFile) -> bool:
    names = {str(entry.name).lower(), str(entry.alternative_name).lower()}
    return not names.isdisjoint(ATTACHMENT_NAMES)


def _unpacked(entry: EmbeddedFile) -> bytes:
    """Unpack an attachment with its checksum proven.

    pypdf repairs a broken deflate stream by leaving out what it cannot read, which is kind to pictures and would
    change amounts. So the usual case, one deflate filter, is unpacked here; the others carry no checksum anyway.
    """
    stream = entry._embedded_file
    if _filters(stream.get("/Filter")) != ["/FlateDecode"] or stream.get("/DecodeParms") is not None:
        return entry.content
    inflater = zlib.decompressobj()
    xml = inflater.decompress(stream._data, XML_BYTES_MAX)
    if inflater.unconsumed_tail:
        raise LimitReachedError("attachment")
    if not inflater.eof:
        raise Refusal(ReasonCode.DAMAGED, expected="a whole embedded invoice", found="one that is cut off")
    return xml


def _filters(declared: object) -> list[str]:
    resolved = declared.get_object() if isinstance(declared, PdfObject) else declared
    return [str(name) for name in resolved] if isinstance(resolved, list) else [str(resolved)]


def _text(reader: PdfReader) -> str:
    """Extract the text of all pages; a cut text would lose lines, so more than the bound is refused."""
    if len(reader.pages) > PAGES_MAX:
        raise Refusal(
            ReasonCode.TOO_LARGE, expected=f"at most {PAGES_MAX} pages without XML", found=f"{len(reader.pages):,}"
        )
    pages: list[str] = []
    for page in reader.pages:
        pages.append(page.extract_text())
        if sum(map(len, pages)) > TEXT_CHARS_MAX:
            raise Refusal(ReasonCode.TOO_LARGE, expected=f"at most {TEXT_CHARS_MAX:,} characters", found="more")
    return "\n".join(pages).strip()
