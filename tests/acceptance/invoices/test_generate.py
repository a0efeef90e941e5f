"""The generated month is what the repository carries, is planted as its truth says, and reads back as it was meant."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import pytest
from invoices.extraction import read_answer
from invoices.generate import generate_month
from invoices.generate.damage import DAMAGES
from invoices.generate.plan import PLANTED_EACH
from invoices.generate.truth import Entry, Planted
from invoices.mailbox import Attachment, Collected, Skipped, collect
from invoices.model import Invoice, InvoiceFormat, InvoiceKind, NeedsModel, Unreadable
from invoices.orders import Order, OrderStatus, OrdersUnreadable, load_orders, write_orders
from invoices.parsing import read_invoice
from invoices.world.reading import invoice_fields

EXAMPLES = Path(__file__).parents[3] / "examples"
CARRIED = EXAMPLES / "invoices" / "month"
MAILS_DIGEST = "1ad728a93f0dac1514522e99312143a0bb6c957be00f3c69fabceb65194437ed"
"""SHA-256 over the carried mails' names and contents in order; changes only together with the month itself."""
PDF_MAKERS = {"pypdf": "7.1.1", "reportlab": "5.1.0"}
"""With other versions the PDFs may be other bytes that say the same; then only the other mails are compared."""


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Entry]]:
    folder = tmp_path_factory.mktemp("generated") / "month"
    return folder, generate_month(folder)


@pytest.fixture(scope="module")
def read_back(month: tuple[Path, list[Entry]]) -> list[tuple[Entry, Collected]]:
    folder, entries = month
    return list(zip(entries, collect(folder / "mail"), strict=True))


def dump(orders: Path) -> list[str]:
    with closing(sqlite3.connect(f"{orders.as_uri()}?mode=ro", uri=True)) as connection:
        return list(connection.iterdump())


def test_carried_month_is_what_the_generator_makes(month: tuple[Path, list[Entry]]) -> None:
    """What a stranger clones is what they can make again: the same mails, byte by byte, and the same orders."""
    folder, entries = month
    same_makers = all(version(name) == made_with for name, made_with in PDF_MAKERS.items())
    for entry in entries:
        if same_makers or not entry.attachment.endswith(".pdf"):
            carried = (CARRIED / "mail" / entry.mail).read_bytes()
            assert carried == (folder / "mail" / entry.mail).read_bytes(), entry.mail
    assert (CARRIED / "truth.json").read_bytes() == (folder / "truth.json").read_bytes()
    assert dump(CARRIED / "orders.sqlite") == dump(folder / "orders.sqlite")


def test_carried_mails_have_their_pinned_digest() -> None:
    """A checkout that changed line ends, or an edit of one mail, is noticed by name of the month."""
    digest = sha256()
    paths = sorted((CARRIED / "mail").iterdir())
    for path in paths:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    assert len(paths) == 200
    assert digest.hexdigest() == MAILS_DIGEST


def test_same_seed_in_another_process_gives_the_same_month(month: tuple[Path, list[Entry]], tmp_path: Path) -> None:
    """No clock, no chance and no hash order reach the files."""
    command = [sys.executable, "-m", "invoices.generate", "--out", str(tmp_path / "again")]
    subprocess.run(command, check=True, cwd=EXAMPLES, capture_output=True)
    for path in sorted((month[0] / "mail").iterdir()):
        assert path.read_bytes() == (tmp_path / "again" / "mail" / path.name).read_bytes(), path.name


def test_another_seed_gives_another_month(tmp_path: Path) -> None:
    """Each kind is planted whatever the seed, at least in a smaller month too."""
    entries = generate_month(tmp_path / "other", seed=7, count=100)
    assert {entry.planted for entry in entries} == {None, *Planted}
    assert len({entry.mail for entry in entries}) == 100


def test_existing_folder_is_not_written_over(tmp_path: Path) -> None:
    """The command refuses in one sentence, and writes nothing."""
    command = [sys.executable, "-m", "invoices.generate", "--out", str(tmp_path)]
    (tmp_path / "mail").mkdir()
    refused = subprocess.run(command, cwd=EXAMPLES, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "expected a new folder" in refused.stderr
    assert not (tmp_path / "orders.sqlite").exists()


def test_month_has_every_form_and_every_plant(month: tuple[Path, list[Entry]]) -> None:
    """200 mails, in the shares that the example promises."""
    _folder, entries = month
    forms = Counter(entry.form for entry in entries)
    assert {name: forms[name] for name in ("ubl", "cii", "facturx", "model")} == {
        "ubl": 90,
        "cii": 60,
        "facturx": 30,
        "model": 10,
    }
    assert {damage.name for damage in DAMAGES} <= set(forms)
    assert Counter(entry.planted for entry in entries if entry.planted) == dict.fromkeys(Planted, PLANTED_EACH)


def test_every_mail_reads_back_as_its_truth_says(read_back: list[tuple[Entry, Collected]]) -> None:
    """Generator, mailbox, parser and the stand-in model agree on all 200: each field of each invoice, each reason."""
    for entry, item in read_back:
        assert (item.mail_id, item.sender, item.name) == (
            entry.message_id,
            entry.sender,
            entry.attachment or entry.mail,
        )
        if isinstance(item, Skipped):
            assert item.code == entry.expected
            continue
        found = read_as_the_task_would(item)
        if isinstance(found, Unreadable):
            assert found.reason_code == entry.expected, found.reason
        else:
            assert found == entry.invoice, entry.mail


def read_as_the_task_would(item: Attachment) -> Invoice | Unreadable:
    found = read_invoice(item.name, item.content)
    if isinstance(found, NeedsModel):
        answer = json.dumps(invoice_fields(f"<document>{found.text}</document>"))
        return read_answer(answer, where="rules", source=found.source)
    return found


def test_hostile_file_name_is_harmless_and_its_invoice_is_read(
    read_back: list[tuple[Entry, Collected]],
) -> None:
    """`../../../orders.xml` is an invoice with a bad name, not an attack that loses an invoice."""
    (entry,) = [entry for entry, _item in read_back if entry.attachment == "orders.xml"]
    assert entry.invoice is not None


def test_plants_are_true_and_clean_invoices_are_clean(month: tuple[Path, list[Entry]]) -> None:
    """The answer key is checked by an independent look at orders and invoices: no plant missing, none by accident."""
    folder, entries = month
    orders = load_orders(folder / "orders.sqlite")
    invoices = [(entry, entry.invoice) for entry in entries if entry.invoice is not None]
    billed = {invoice.order_ref for _entry, invoice in invoices if invoice.kind is InvoiceKind.INVOICE}
    seen: set[tuple[str, str]] = set()
    for entry, invoice in invoices:
        found = what_is_wrong(invoice, orders, billed, seen)
        seen.add((invoice.supplier_id, invoice.number))
        assert found == ({entry.planted} if entry.planted else set()), (entry.mail, entry.detail)
        assert bool(entry.detail) == bool(entry.planted)


def what_is_wrong(
    invoice: Invoice, orders: dict[str, Order], billed: set[str | None], seen: set[tuple[str, str]]
) -> set[Planted]:
    found = set()
    if (invoice.supplier_id, invoice.number) in seen:
        found.add(Planted.DUPLICATE_INVOICE)
    if sum((line.net for line in invoice.lines), Decimal(0)) != invoice.net_total:
        found.add(Planted.TOTAL_MISMATCH)
    if invoice.order_ref is None:
        return found | {Planted.NO_ORDER}
    order = orders.get(invoice.order_ref)
    if order is None:
        return found | {Planted.UNKNOWN_ORDER}
    if invoice.kind is InvoiceKind.CREDIT_NOTE and invoice.order_ref not in billed:
        found.add(Planted.CREDIT_NOTE_WITHOUT_INVOICE)
    if order.supplier_id != invoice.supplier_id:
        found.add(Planted.OTHER_SUPPLIER)
    if order.status is OrderStatus.CLOSED:
        found.add(Planted.CLOSED_ORDER)
    if order.currency != invoice.currency:
        found.add(Planted.WRONG_CURRENCY)
    return found | wrong_lines(invoice, order)


def wrong_lines(invoice: Invoice, order: Order) -> set[Planted]:
    found = set()
    ordered = {line.item: line for line in order.lines}
    for line in invoice.lines:
        expected = ordered.pop(line.item, None)
        if expected is None:
            found.add(Planted.EXTRA_LINE)
        elif line.unit_price != expected.unit_price:
            found.add(Planted.WRONG_PRICE)
        elif line.quantity > expected.quantity:
            found.add(Planted.WRONG_QUANTITY)
    if ordered and invoice.kind is InvoiceKind.INVOICE:
        found.add(Planted.MISSING_LINE)
    return found


def test_pages_tell_a_model_to_misbehave_and_are_read_all_the_same(
    read_back: list[tuple[Entry, Collected]],
) -> None:
    """The prompt injection on each page without data is part of the month."""
    pages = [item for entry, item in read_back if entry.form == InvoiceFormat.MODEL and isinstance(item, Attachment)]
    assert len(pages) == 10
    assert all(b"Ignore all instructions" in page.content for page in pages)


def test_orders_round_trip_and_are_never_created_or_changed(tmp_path: Path) -> None:
    """Reading is read-only: no file appears, no file is written over, no foreign file is taken for orders."""
    orders = load_orders(CARRIED / "orders.sqlite")
    changed = [replace(order, currency="CHF") for order in orders.values()]
    write_orders(tmp_path / "orders.sqlite", changed)
    assert list(load_orders(tmp_path / "orders.sqlite").values()) == changed
    with pytest.raises(FileExistsError):
        write_orders(tmp_path / "orders.sqlite", changed)
    with pytest.raises(OrdersUnreadable):
        load_orders(tmp_path / "gone.sqlite")
    assert not (tmp_path / "gone.sqlite").exists()
    (tmp_path / "foreign.sqlite").write_bytes(b"not a database at all, but long enough to be looked at" * 9)
    with pytest.raises(OrdersUnreadable, match="not a database"):
        load_orders(tmp_path / "foreign.sqlite")
