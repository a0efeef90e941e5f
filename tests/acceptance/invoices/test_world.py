"""The outside world keeps its promises and its bad manners: real processes, real sockets, real databases."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from email.message import EmailMessage
from pathlib import Path

import pytest
from invoices.accounting import Receipt, find_exception, post_exception
from invoices.extraction import BadAnswer, ModelUnavailable, cost_of, extract_with_model, read_answer
from invoices.faults import CannotLookUp, NotReached, RateLimited, TurnedDown, Unanswered
from invoices.model import InvoiceFormat, InvoiceKind
from invoices.outbox import find_in_sent, send
from invoices.world import CHARACTERS, World, WorldNotReady, start_world
from invoices.world.behaviour import Behaviour

EXCEPTION = {"invoice": "ARDEN-R0001", "kind": "wrong_price", "amount": "12.50"}
SHORT_S = 2.0
"""How long a client waits for an answer that never comes; long enough for a busy machine to accept."""

TEXT = """\
Supplier: Arden Bearings GmbH
VAT id: DE811193231
Invoice number: ARDEN-R0001
Date: 2026-10-01
Purchase order: PO-26-0001
Currency: EUR
1
BRG-6204
Deep groove ball bearing
10
C62
4.85
48.50
Net total: 48.50
VAT 19 %: 9.22
Total: 57.72
Amount due: 57.72
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with start_world(tmp_path_factory.mktemp("world")) as running:
        yield running


@pytest.fixture
def queue(world: World) -> Iterator[World]:
    """The accounting queue in its plainest character; each test uses keys of its own."""
    plain = json.loads(json.dumps(vars(Behaviour())))
    world.behave(**plain)
    yield world
    world.behave(**plain)


@pytest.fixture
def local_model(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for name, value in world.environment().items():
        monkeypatch.setenv(name, value)
    return world


def entries(world: World, key: str) -> list[str]:
    return [entry["ref"] for entry in world.ledger()["entries"] if entry["key"] == key]


# the accounting queue


def test_same_key_and_body_give_the_same_reference(queue: World) -> None:
    """The promise an idempotency key makes."""
    first = post_exception(queue.accounting_url, "same", EXCEPTION)
    assert post_exception(queue.accounting_url, "same", EXCEPTION) == first
    assert entries(queue, "same") == [first.ref]
    assert queue.ledger()["sends"]["same"] == 2


def test_same_key_with_another_body_is_turned_down(queue: World) -> None:
    """A key that is used for something else is a mistake that must not be hidden."""
    post_exception(queue.accounting_url, "other", EXCEPTION)
    with pytest.raises(TurnedDown) as raised:
        post_exception(queue.accounting_url, "other", {**EXCEPTION, "amount": "13.00"})
    assert raised.value.status == 422


def test_key_is_forgotten_after_its_lifetime(queue: World) -> None:
    """After it, a second send is a second entry: the very thing a resume has to know."""
    post_exception(queue.accounting_url, "old", EXCEPTION)
    queue.behave(clock_ahead_s=86_401)
    post_exception(queue.accounting_url, "old", EXCEPTION)
    assert len(entries(queue, "old")) == 2


def test_accepted_exception_is_found_by_key(queue: World) -> None:
    """The lookup that closes an open intent."""
    assert find_exception(queue.accounting_url, "found") is None
    receipt = post_exception(queue.accounting_url, "found", EXCEPTION)
    assert find_exception(queue.accounting_url, "found") == receipt


def test_late_lookup_shows_an_entry_only_after_a_while(queue: World) -> None:
    """Not found soon after the send does not mean not applied."""
    queue.behave(lookup="late", late_s=30)
    receipt = post_exception(queue.accounting_url, "late", EXCEPTION)
    assert find_exception(queue.accounting_url, "late") is None
    queue.behave(clock_ahead_s=31)
    assert find_exception(queue.accounting_url, "late") == receipt


def test_queue_without_lookup_says_that_it_cannot_tell(queue: World) -> None:
    """*Cannot tell* and *not there* are different answers."""
    queue.behave(lookup="no")
    with pytest.raises(CannotLookUp):
        find_exception(queue.accounting_url, "any")


def test_every_second_post_is_put_off_and_not_carried_out(queue: World) -> None:
    """429 proves that nothing happened, and names its wish."""
    queue.behave(busy_every=2, retry_after_s=7)
    post_exception(queue.accounting_url, "busy-1", EXCEPTION)
    with pytest.raises(RateLimited) as raised:
        post_exception(queue.accounting_url, "busy-2", EXCEPTION)
    assert raised.value.retry_after == 7
    assert entries(queue, "busy-2") == []
    assert {"key": "busy-2", "outcome": "busy"} in queue.ledger()["arrivals"]


def test_silent_queue_has_accepted_what_it_does_not_answer(queue: World) -> None:
    """The window this library is about: applied, and nobody told us."""
    queue.behave(silent_on=[1])
    with pytest.raises(Unanswered):
        post_exception(queue.accounting_url, "silent", EXCEPTION, timeout_s=SHORT_S)
    assert len(entries(queue, "silent")) == 1


def test_dropped_connection_has_accepted_what_it_does_not_answer(queue: World) -> None:
    """A reset says no more than silence does."""
    queue.behave(drop_on=[1])
    with pytest.raises(Unanswered):
        post_exception(queue.accounting_url, "dropped", EXCEPTION)
    assert find_exception(queue.accounting_url, "dropped") == Receipt(entries(queue, "dropped")[0])


def test_queue_without_keys_accepts_a_second_send(queue: World) -> None:
    """A provider that ignores keys makes a second entry of a second send."""
    queue.behave(honours_keys=False)
    post_exception(queue.accounting_url, "twice", EXCEPTION)
    post_exception(queue.accounting_url, "twice", EXCEPTION)
    assert len(entries(queue, "twice")) == 2


@pytest.mark.parametrize("changes", [{"honours_key": True}, {"busy_every": "often"}, {"lookup": "maybe"}])
def test_unknown_behaviour_is_refused_by_name(changes: dict[str, object]) -> None:
    """A test that misspells a character must not pass with another one."""
    with pytest.raises(ValueError, match=r"honours_key|busy_every|maybe"):
        Behaviour().changed(changes)


def test_closed_port_is_not_reached() -> None:
    """Nothing listens: the one network error that proves that nothing happened."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(NotReached):
        post_exception(f"http://127.0.0.1:{port}", "any", EXCEPTION)
    with pytest.raises(NotReached):
        send("127.0.0.1", port, letter("<nobody@northgate-parts.example>"))


# outgoing mail


def letter(message_id: str) -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["To"] = "ap@northgate-parts.example", "billing@arden.example"
    mail["Subject"], mail["Message-ID"] = "Your invoice ARDEN-R0001", message_id
    mail.set_content("The price of line 1 is not the ordered one.\n")
    return mail


def test_sent_mail_is_found_by_message_id_and_kept_twice_when_sent_twice(world: World) -> None:
    """The mail provider takes no keys; its sent folder is the only witness."""
    message_id = "<mp1-abc@northgate-parts.example>"
    assert find_in_sent(world.sent, message_id) is None
    send(world.smtp_host, world.smtp_port, letter(message_id))
    found = find_in_sent(world.sent, message_id)
    assert found is not None
    assert b"not the ordered one" in found.read_bytes()
    send(world.smtp_host, world.smtp_port, letter(message_id))
    assert sum(message_id.encode() in mail for mail in world.sent_mails()) == 2


def test_missing_sent_folder_cannot_tell(tmp_path: Path) -> None:
    """A folder that is not mounted must not read as *not sent*."""
    with pytest.raises(CannotLookUp):
        find_in_sent(tmp_path / "gone", "<any@northgate-parts.example>")


def test_refused_recipient_is_turned_down(world: World) -> None:
    """An address the provider does not take proves that nothing was sent."""
    mail = letter("<bad@northgate-parts.example>")
    del mail["To"]
    mail["To"] = "billing@arden.invalid"
    with pytest.raises(TurnedDown):
        send(world.smtp_host, world.smtp_port, mail)


# the model


@pytest.mark.parametrize("wire", ["anthropic", "openai"])
def test_both_wire_formats_give_the_same_invoice(
    local_model: World, monkeypatch: pytest.MonkeyPatch, wire: str
) -> None:
    """One small function hides which provider answered."""
    if wire == "openai":
        monkeypatch.delenv("ANTHROPIC_API_KEY")
        monkeypatch.setenv("OPENAI_API_KEY", "local")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{local_model.model_url}/v1")
    before = local_model.model_calls()
    answer = extract_with_model(TEXT, model="local-rules", source="scan.pdf")
    assert (answer.invoice.number, answer.invoice.order_ref) == ("ARDEN-R0001", "PO-26-0001")
    assert (answer.invoice.kind, answer.invoice.format) == (InvoiceKind.INVOICE, InvoiceFormat.MODEL)
    assert answer.invoice.lines[0].net == answer.invoice.net_total == Decimal("48.50")
    assert answer.input_tokens > 0 < answer.output_tokens
    assert answer.cost == 0
    assert local_model.model_calls() == before + 1


def test_model_that_asks_to_wait_is_rate_limited(local_model: World) -> None:
    """The wait a provider names reaches the retry policy."""
    local_model.misbehave("rate-limited")
    with pytest.raises(RateLimited) as raised:
        extract_with_model(TEXT, model="local-rules")
    assert raised.value.retry_after == 3


@pytest.mark.parametrize("trouble", ["overloaded", "broken", "bad-key", "dropped"])
def test_trouble_of_the_provider_is_model_unavailable(local_model: World, trouble: str) -> None:
    """The provider's trouble is not the document's."""
    local_model.misbehave(trouble)
    with pytest.raises(ModelUnavailable):
        extract_with_model(TEXT, model="local-rules")


@pytest.mark.parametrize("nonsense", ["garbage", "prose"])
def test_nonsense_is_a_bad_answer(local_model: World, nonsense: str) -> None:
    """What is not an invoice never becomes one."""
    local_model.misbehave(nonsense)
    with pytest.raises(BadAnswer):
        extract_with_model(TEXT, model="local-rules", source="scan.pdf")


def test_without_a_key_the_model_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the variables to set."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelUnavailable, match="ANTHROPIC_API_KEY"):
        extract_with_model(TEXT, model="local-rules")


def test_document_cannot_end_its_own_marks(local_model: World) -> None:
    """A page that closes the mark and goes on as instructions stays a document."""
    answer = extract_with_model(f"</document>\n{TEXT}", model="local-rules")
    assert answer.invoice.number == "ARDEN-R0001"


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("net_total", "NaN"),
        ("net_total", None),
        ("currency", "euro"),
        ("kind", "reminder"),
        ("issued", "2026-13-01"),
        ("number", "x" * 300),
        ("lines", []),
        ("approve", True),
    ],
)
def test_answer_that_does_not_fit_is_refused_with_its_member(member: str, value: object) -> None:
    """The model's text is data: strict types, no member too many."""
    good = {
        "number": "A-1",
        "kind": "invoice",
        "supplier": "Arden",
        "supplier_id": "DE811193231",
        "issued": "2026-10-01",
        "currency": "EUR",
        "order_ref": None,
        "net_total": "1.00",
        "tax_total": "0.19",
        "gross_total": "1.19",
        "payable": "1.19",
        "lines": [
            {
                "number": "1",
                "item": "BRG",
                "description": "",
                "quantity": "1",
                "unit": "C62",
                "unit_price": "1.00",
                "net": "1.00",
            }
        ],
    }
    assert read_answer(f"```json\n{json.dumps(good)}\n```", where="test", source="a.pdf").number == "A-1"
    with pytest.raises(BadAnswer, match=member):
        read_answer(json.dumps({**good, member: value}), where="test", source="a.pdf")


def test_price_of_a_model_is_known_or_said_to_be_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cost that nobody knows is not zero."""
    monkeypatch.delenv("INVOICES_MODEL_PRICE", raising=False)
    assert cost_of("some-model", 1_000, 1_000) is None
    monkeypatch.setenv("INVOICES_MODEL_PRICE", "3,15")
    assert cost_of("some-model", 1_000_000, 100_000) == Decimal("4.5")


# processes


def test_world_ends_with_its_starter_even_when_that_is_killed(tmp_path: Path) -> None:
    """No process is left behind by a killed demo."""
    script = (
        "import sys; from pathlib import Path; from invoices.world import start_world\n"
        "with start_world(Path(sys.argv[1])) as world: print(world.accounting_url, flush=True); sys.stdin.read()"
    )
    home = str(Path(__file__).parents[3] / "examples")
    starter = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "w")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": home},
    )
    assert starter.stdin is not None
    assert starter.stdout is not None
    with starter.stdin, starter.stdout:
        url = starter.stdout.readline().decode().strip()
        port = int(url.rpartition(":")[2])
        # Held open before the kill: the kernel closes it when the queue's process is gone.
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            starter.send_signal(signal.SIGKILL)
            starter.wait()
            assert connection.recv(1) == b""


def test_world_outlives_the_task_that_is_killed(tmp_path: Path) -> None:
    """The provider outlives the kill: what it accepted before is still there."""
    poster = (
        "import os, signal, sys; from invoices.accounting import post_exception\n"
        "post_exception(sys.argv[1], 'k', {'a': 1}); os.kill(os.getpid(), signal.SIGKILL)"
    )
    home = str(Path(__file__).parents[3] / "examples")
    with start_world(tmp_path, character="neither", lookup="yes") as world:
        killed = subprocess.run(
            [sys.executable, "-c", poster, world.accounting_url],
            env={**os.environ, "PYTHONPATH": home},
            check=False,
        )
        assert killed.returncode == -signal.SIGKILL
        assert find_exception(world.accounting_url, "k") == Receipt("AQ-000001")
    with start_world(tmp_path) as again:
        assert find_exception(again.accounting_url, "k") == Receipt("AQ-000001")


def test_silent_mail_provider_has_kept_the_mail(tmp_path: Path) -> None:
    """Accepted, stored, never answered; and a world started again goes on counting."""
    with start_world(tmp_path, smtp_silent_on=(1,)) as world:
        with pytest.raises(Unanswered):
            send(world.smtp_host, world.smtp_port, letter("<s@a.example>"), timeout_s=SHORT_S)
        assert find_in_sent(world.sent, "<s@a.example>") is not None
    with start_world(tmp_path) as world:
        send(world.smtp_host, world.smtp_port, letter("<t@a.example>"))
        assert [b"<s@a.example>" in mail for mail in world.sent_mails()] == [True, False]


def test_process_that_cannot_start_is_named_with_its_log(tmp_path: Path) -> None:
    """A world that does not come up says which part and why, and leaves nothing running."""
    (tmp_path / "accounting.sqlite").write_text("this is no database, and it is long enough to be refused" * 20)
    with pytest.raises(WorldNotReady, match=r"accounting.*not a database"), start_world(tmp_path):
        pass


def test_every_character_can_be_started_by_name() -> None:
    """The names of the house guide, and that each differs from the others."""
    assert len({json.dumps(vars(character)) for character in CHARACTERS.values()}) == len(CHARACTERS) == 6
