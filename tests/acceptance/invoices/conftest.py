"""Where the invoice files of the tests come from: small hand-written ones beside this file, real ones if present."""

import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from pypdf import PdfWriter

WRITTEN = Path(__file__).parent / "samples"
REAL = Path(os.environ.get("MILEPOST_SAMPLES", Path(__file__).parents[3].parent / "shared/data/invoices"))


@pytest.fixture(scope="session")
def written() -> Callable[[str], bytes]:
    """Gives the bytes of a hand-written sample by file name."""
    return lambda name: (WRITTEN / name).read_bytes()


@pytest.fixture(scope="session")
def real() -> Callable[[str], bytes]:
    """Gives the bytes of a real sample by its path under the samples folder; skips where that folder is absent."""
    if not REAL.is_dir():
        pytest.skip(f"no real invoices at {REAL}: set MILEPOST_SAMPLES to a folder with ubl/, cii/ and facturx/")
    return lambda path: (REAL / path).read_bytes()


@pytest.fixture(scope="session")
def facturx(written: Callable[[str], bytes]) -> Callable[..., bytes]:
    """Makes a one-page PDF that embeds files by name; the hand-written CII invoice unless told otherwise."""

    def make(attachments: dict[str, bytes] | None = None, password: str | None = None) -> bytes:
        writer = PdfWriter()
        writer.add_blank_page(width=200, height=200)
        chosen = {"factur-x.xml": written("cii_invoice.xml")} if attachments is None else attachments
        for name, data in chosen.items():
            files = writer.add_attachment(name, data).pdf_object["/EF"]
            writer._replace_object(files.raw_get("/F"), files["/F"].flate_encode())
        if password is not None:
            writer.encrypt(password, algorithm="RC4-128")
        out = BytesIO()
        writer.write(out)
        return out.getvalue()

    return make
