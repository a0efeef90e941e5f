"""Whatever the bytes, reading ends in one of its three outcomes."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from invoices.model import Invoice, NeedsModel, Unreadable
from invoices.parsing import read_invoice

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.xml"))
BOUNDED = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
POSITION = st.floats(0, 1, exclude_max=True)
CUTS = st.tuples(POSITION, POSITION)
FLIPS = st.lists(st.tuples(POSITION, st.integers(1, 255)), min_size=1, max_size=8)


def ends_well(data: bytes) -> None:
    outcome = read_invoice("fuzz", data)
    assert isinstance(outcome, Invoice | NeedsModel | Unreadable)


def flipped(data: bytes, flips: list[tuple[float, int]]) -> bytes:
    changed = bytearray(data)
    for where, mask in flips:
        changed[int(where * len(changed))] ^= mask
    return bytes(changed)


@BOUNDED
@given(
    prefix=st.sampled_from([b"", b"<", b"%PDF-1.7\n", b"<?xml version='1.0'?>"]),
    body=st.binary(max_size=600),
    suffix=st.sampled_from([b"", b"\n%%EOF\n", b">"]),
)
def test_random_bytes_end_in_an_outcome(prefix, body, suffix):
    """The mailbox is open to everybody."""
    ends_well(prefix + body + suffix)


@BOUNDED
@given(sample=st.sampled_from(SAMPLES), flips=FLIPS)
def test_flipped_xml_ends_in_an_outcome(sample, flips):
    """Near-valid documents reach the field readers, where random bytes never come."""
    ends_well(flipped(sample.read_bytes(), flips))


@BOUNDED
@given(sample=st.sampled_from(SAMPLES), cut=CUTS)
def test_xml_with_a_piece_cut_out_ends_in_an_outcome(sample, cut):
    """Truncated at the end, at the start, or in the middle."""
    data = sample.read_bytes()
    start, end = sorted(int(where * len(data)) for where in cut)
    ends_well(data[:start] + data[end:])


@BOUNDED
@given(flips=FLIPS)
def test_flipped_pdf_ends_in_an_outcome(facturx: Callable[[], bytes], flips):
    """Each part of a PDF's skeleton may be the broken one."""
    ends_well(flipped(facturx(), flips))


@BOUNDED
@given(cut=CUTS)
def test_pdf_with_a_piece_cut_out_ends_in_an_outcome(facturx: Callable[[], bytes], cut):
    """Offsets no longer agree, objects are missing, the end is still there."""
    data = facturx()
    start, end = sorted(int(where * len(data)) for where in cut)
    ends_well(data[:start] + data[end:])


@pytest.mark.parametrize("path", ["facturx/EN16931_Rabatte.pdf", "facturx/XRECHNUNG_Einfach.pdf"])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(flips=FLIPS)
def test_flipped_real_pdf_is_the_same_invoice_or_none(real: Callable[[str], bytes], path, flips):
    """In a packed stream a flip may cost the invoice, never change it."""
    original = real(path)
    outcome = read_invoice(path, flipped(original, flips))
    assert not isinstance(outcome, Invoice) or outcome == read_invoice(path, original)
