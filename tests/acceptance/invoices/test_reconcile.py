"""The reconciliation end to end through the command line: real mails, real services, the carried month."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from email import message_from_bytes
from pathlib import Path

import pytest
from invoices.accounting import post_exception
from invoices.demo.journal import read_journal, tokens_of
from invoices.demo.stage import RUN, TARGET, Stage, staged
from invoices.mailbox import Attachment, Skipped, SkippedCode, collect
from invoices.matching import Kind, Reading, discrepancies, every_unreadable_file_is_named, label_of
from invoices.model import Invoice
from invoices.notices import notices_of
from invoices.orders import load_orders
from invoices.parsing import read_invoice
from invoices.world import MONTH
from stages import milepost, report_of, truth_of

COUNT = 200
SMALL = 30


HOSTILE = [
    ("<~~../../x[1]#2/y>", "../../-rf ~[a]#1/b.xml", "-rf@x.example"),
    ("<" + "i" * 900 + "@x.example>", "n" * 900 + ".xml", "s" * 300 + "@x.example"),
    ("<same@x.example>", "\u202egnp.\u2028exe.xml", "\u2028~@x.example"),
    ("<same@x.example>", "\u202egnp.\u2028exe.xml", "a@x.example"),
    ("", "\udcff\udcfe.pdf", "\udcff@x.example"),
]


def hostile_mail(message_id: str, name: str, sender: str) -> bytes:
    """Write the bytes of a mail by hand: the library would refuse to."""
    head = f"From: {sender}\nMessage-ID: {message_id}\nMIME-Version: 1.0\n"
    kind = f'Content-Type: application/xml; name="{name}"\nContent-Disposition: attachment; filename="{name}"\n'
    return f"{head}{kind}\n<Invoice>\n".encode("utf-8", "surrogateescape")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """The whole carried month, reconciled once."""
    with staged("done", tmp_path_factory.mktemp("month") / "done", COUNT) as stage:
        stage.start()
        yield stage


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Stage]:
    """The first mails of the month, not started yet."""
    with staged("small", tmp_path / "small", SMALL) as stage:
        yield stage


def test_month_finds_exactly_what_was_planted(done: Stage) -> None:
    """The matching is only worth its checkpoints if it neither misses nor invents anything."""
    truth = truth_of(MONTH, COUNT)
    planted = Counter(entry["planted"] or "unreadable" for entry in truth if entry["planted"] or not entry["invoice"])
    posted = Counter(one["discrepancy"]["kind"] for one in report_of(done)["posted"])
    assert posted == planted


def test_each_discrepancy_names_its_invoice_and_is_in_the_queue_once(done: Stage) -> None:
    """What the report says was posted is what the provider has, under the same reference."""
    posted = report_of(done)["posted"]
    entries = done.world.ledger()["entries"]
    in_queue = {entry["ref"]: entry["exception"]["id"] for entry in entries}
    assert {one["ref"]: one["discrepancy"]["id"] for one in posted} == in_queue
    assert len(entries) == len(posted)
    numbers = {entry["invoice"]["number"] for entry in truth_of(MONTH, COUNT) if entry["planted"]}
    assert {one["discrepancy"]["subject"] for one in posted if one["discrepancy"]["kind"] != "unreadable"} == numbers


def test_damaged_and_hostile_files_are_named_and_stop_nothing(done: Stage) -> None:
    """A stranger's file must never be able to stop a month, nor to vanish from it."""
    expected = {entry["attachment"] or entry["mail"] for entry in truth_of(MONTH, COUNT) if not entry["invoice"]}
    unreadable = [p["discrepancy"] for p in report_of(done)["posted"] if p["discrepancy"]["kind"] == "unreadable"]
    assert {one["subject"] for one in unreadable} == expected
    assert all(one["detail"] for one in unreadable)


def test_each_supplier_gets_one_mail_found_by_its_key(done: Stage) -> None:
    """The provider knows no keys: the Message-ID has to be derived from ours, once for each supplier."""
    mails = [message_from_bytes(content) for content in done.world.sent_mails()]
    assert len({mail["To"] for mail in mails}) == len(mails) == len(report_of(done)["mails"])
    assert {mail["Message-ID"] for mail in mails} == {mail["message_id"] for mail in report_of(done)["mails"]}
    assert all(mail["Message-ID"].startswith("<mp1-") for mail in mails)


def test_model_is_asked_only_for_pdfs_without_data_and_its_tokens_are_recorded(done: Stage) -> None:
    """A model call is the one thing here that costs money: each is in its checkpoint."""
    by_model = [entry for entry in truth_of(MONTH, COUNT) if entry["form"] == "model"]
    checkpoints = read_journal(done.store, RUN).extracted()
    assert done.world.model_calls() == len(by_model) == report_of(done)["by_model_count"]
    assert sum(tokens_of(checkpoint) > 0 for checkpoint in checkpoints) == len(by_model)
    assert all(one.spent is None or "cost" in one.spent for one in checkpoints)


def test_every_checkpoint_was_verified_and_says_what_comes_next(done: Stage) -> None:
    """A checkpoint without a check or a next action is a note, not a milepost."""
    verified = read_journal(done.store, RUN).verified.values()
    assert all(checkpoint.checks and checkpoint.next_action for checkpoint in verified)


def test_rate_limited_queue_is_waited_for(small: Stage) -> None:
    """429 proves that nothing happened: the policy waits and sends again, nothing is lost or doubled."""
    small.world.behave(busy_every=2, retry_after_s=0)
    small.start()
    ledger = small.world.ledger()
    assert len({entry["key"] for entry in ledger["entries"]}) == len(ledger["entries"]) > 0
    assert "busy" in {arrival["outcome"] for arrival in ledger["arrivals"]}


def test_connection_lost_after_acceptance_is_looked_up_not_sent_again(small: Stage) -> None:
    """No answer proves nothing: the queue is asked by key, and has it."""
    small.world.behave(drop_on=[2])
    small.start()
    ledger = small.world.ledger()
    assert set(ledger["sends"].values()) == {1}
    assert len(read_journal(small.store, RUN).recovered()) == 1


def test_address_the_provider_refuses_is_a_line_in_the_report(small: Stage) -> None:
    """The sender of a mail is a stranger's choice; a refused one must not end the month."""
    mail = small.folder / "mail" / "0001.eml"
    content = mail.read_text("utf-8", "surrogateescape").replace("From: billing@brixi.example", "From: x@brixi.invalid")
    mail.write_text(content, "utf-8", "surrogateescape")
    shutil.copy(mail, mail.with_name("0001-again.eml"))
    small.start()
    refused = [one for one in report_of(small)["mails"] if one["refused"]]
    assert [one["to"] for one in refused] == ["x@brixi.invalid"]
    assert "TurnedDown" in refused[0]["refused"]


def test_hostile_names_and_senders_stop_nothing(small: Stage) -> None:
    """Message-IDs, file names and addresses become names and keys of ours: whatever they hold, the month goes on."""
    for number, (message_id, name, sender) in enumerate(HOSTILE):
        (small.folder / "mail" / f"hostile-{number}.eml").write_bytes(hostile_mail(message_id, name, sender))
    small.start()
    unreadable = [p for p in report_of(small)["posted"] if p["discrepancy"]["kind"] == "unreadable"]
    known = [entry for entry in truth_of(MONTH, SMALL) if not entry["invoice"]]
    assert len(unreadable) == len(HOSTILE) + len(known)


def test_answer_that_is_no_invoice_becomes_an_unreadable_file(small: Stage) -> None:
    """What a model says is data from outside; nonsense must not end the month, and never becomes an invoice."""
    small.world.misbehave("prose")
    small.start()
    report = report_of(small)
    by_model = [entry for entry in truth_of(MONTH, SMALL) if entry["form"] == "model"]
    assert report["by_model_count"] == len(by_model) - 1
    assert "as JSON" in " ".join(one["discrepancy"]["detail"] for one in report["posted"])


def test_month_started_again_under_another_run_id_writes_nothing_twice(small: Stage) -> None:
    """Somebody starts the month a second time: the keys belong to the month, not to the run."""
    small.start()
    entries, mails = small.world.ledger()["entries"], small.world.sent_mails()
    again = milepost(small, "run", TARGET, f"month={RUN}", "--run-id", "again")
    assert again.returncode == 0, again.stderr
    assert small.world.ledger()["entries"] == entries
    assert set(small.world.ledger()["sends"].values()) == {1}
    assert small.world.sent_mails() == mails
    assert report_of(small, "again") == report_of(small)


def test_orders_that_change_while_the_run_is_down_are_a_question(small: Stage) -> None:
    """The matching stands on what the orders said; when they say something else, a person decides."""
    small.start(die_at="send durable 1")
    with closing(sqlite3.connect(small.folder / "orders.sqlite")) as orders, orders:
        orders.execute("update order_lines set unit_price = '9999.00' where order_id = 1")
    resumed = milepost(small, "resume", RUN)
    assert resumed.returncode == 4
    assert "source-changed" in resumed.stderr + resumed.stdout


# ── matching and notices, without a run ─────────────────────────────────────────────────────────────


def test_labels_are_unique_and_plain() -> None:
    """A label is part of a step's name: it must be allowed there, and no two files of a mailbox may share one."""
    names = ["a b.xml", "a-b.xml", "~", "", "../x", "é.xml", "x" * 500]
    labels = [label_of(Attachment("id", "", name, "", b"")) for name in names]
    assert len(set(labels)) == len(labels)
    assert all(label.isascii() and label[0].isalnum() and len(label) < 100 for label in labels)


def test_strangers_are_not_written_to() -> None:
    """Rubbish in somebody's name must not make us send them mail."""
    skipped = Skipped("id", "victim@elsewhere.example", "x", SkippedCode.WINMAIL, "not for us")
    readings = [Reading("id", skipped.sender, "x", skipped)]
    found = discrepancies(readings, {})
    assert [one.kind for one in found] == [Kind.UNREADABLE]
    assert notices_of("2026-10", found, readings) == []


def test_dropped_unreadable_file_fails_verification() -> None:
    """Nothing left out: the verifier counts what the matching would have to name."""
    readings = [Reading("id", "", "x.bin", read_invoice("x.bin", b"\x00\x01"))]  # type: ignore[arg-type]  # never a model's
    assert every_unreadable_file_is_named(discrepancies(readings, {}), readings) is None
    assert every_unreadable_file_is_named([], readings) is not None


def test_one_invoice_with_two_wrong_prices_is_one_discrepancy() -> None:
    """One of a kind for each file: an accountant opens an invoice once."""
    orders = load_orders(MONTH / "orders.sqlite")
    first = collect(MONTH / "mail")[0]
    assert isinstance(first, Attachment)
    billed = read_invoice(first.name, first.content)
    assert isinstance(billed, Invoice)
    dear = tuple(replace(line, unit_price=line.unit_price + 1) for line in billed.lines)
    found = discrepancies([Reading("id", "", "x.xml", replace(billed, lines=dear))], orders)
    assert [one.kind for one in found] == [Kind.WRONG_PRICE]
    assert found[0].detail.count("was agreed") == len(dear)


def test_posted_body_is_what_the_queue_can_find_again(done: Stage) -> None:
    """The request is plain JSON: posting it again under its key is recognised by the queue as the same."""
    entry = done.world.ledger()["entries"][0]
    again = post_exception(done.world.accounting_url, entry["key"], json.loads(json.dumps(entry["exception"])))
    assert again.ref == entry["ref"]


def test_a_shadow_month_reads_everything_and_sends_nothing(small: Stage) -> None:
    """Before the first live month: the model and the orders are read, the queue and the suppliers hear nothing."""
    done = milepost(small, "run", TARGET, f"month={RUN}", "--run-id", "rehearsal", "--shadow")
    assert done.returncode == 0, done.stderr
    assert (small.world.ledger()["entries"], small.world.sent_mails()) == ([], [])
    assert small.world.model_calls() > 0
    told = json.loads(milepost(small, "shadow", "report", "rehearsal", "--format", "json").stdout)
    assert {"post", "notify"} <= set(re.findall(r'"(?:effect)": "(\w+)"', json.dumps(told)))


def test_a_month_is_handed_on_as_one_file_and_used_what_it_held(done: Stage) -> None:
    """Its record is checked without the store; both permissions were needed."""
    written = milepost(done, "audit", RUN, "--output", "month.html")
    assert written.returncode == 0, written.stderr
    assert milepost(done, "audit", "verify", "month.html").returncode == 0
    (task,) = json.loads(milepost(done, "permissions", RUN, "--json").stdout)["tasks"]
    assert {one["permission"]: one["stands"] for one in task["permissions"]} == {
        "accounting:write": "used",
        "mail:send": "used",
    }
