"""Reconcile a month of supplier invoices with the purchase orders: a task to read, run and start your own from.

collect   plain code: cheap and read-only, so it simply runs again on every resume
extract   a checkpoint for each attachment; a model reads the PDFs that carry no data
match     a checkpoint that remembers what the orders database said
post      an effect for each discrepancy, a checkpoint after each batch
notify    an effect for each supplier: no keys there, so it is found again by its Message-ID
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

from invoices.accounting import Receipt, find_exception, post_exception
from invoices.extraction import PROMPT, BadAnswer, ModelUnavailable, extract_with_model
from invoices.faults import NotReached, RateLimited, TurnedDown, Unanswered
from invoices.mailbox import Attachment
from invoices.matching import Discrepancy, Reading, discrepancies, every_unreadable_file_is_named, label_of
from invoices.model import Invoice, NeedsModel, ReasonCode, Unreadable
from invoices.notices import OUR_DOMAIN, Notice, mail_of, notices_of
from invoices.orders import load_orders
from invoices.outbox import find_in_sent, send
from invoices.parsing import read_invoice
from invoices.report import Mailed, Posted, Report
from invoices.settings import Settings
from milepost import Found, Key, NotFound, Retry, Sql, StepFailed, effect, spent, step, task
from milepost.verifiers import matches_count_of, no_empties, unique

OUTSIDE = Settings.read()
BATCH = 10
NOTHING_HAPPENED = (NotReached, RateLimited, TurnedDown)
LATER = Retry(on=(NotReached, RateLimited, Unanswered), attempts=6, longest_wait=timedelta(minutes=1))


# ── extract ─────────────────────────────────────────────────────────────────────────────────────────


def an_invoice_has_lines(reading: Reading) -> str | None:
    """Verify that what passes for an invoice can be compared with an order."""
    found = reading.found
    return f"invoice {found.number} has no lines" if isinstance(found, Invoice) and not found.lines else None


@step(
    key=label_of,
    verify=an_invoice_has_lines,
    retry=Retry(on=(RateLimited, ModelUnavailable), attempts=5),
    why="expensive",
    next="Match the invoices to the purchase orders.",
)
def extract(attachment: Attachment) -> Reading:
    """Read one attachment; what cannot be read comes back with its reason and never stops the month."""
    found = read_invoice(attachment.name, attachment.content)
    if isinstance(found, NeedsModel):
        found = read_by_model(found)
    return Reading(attachment.mail_id, attachment.sender, attachment.name, found)


def read_by_model(page: NeedsModel) -> Invoice | Unreadable:
    """Have the model read a page of text; nonsense for an answer makes it one more unreadable file."""
    try:
        answer = extract_with_model(page.text, model=OUTSIDE.model, source=page.source)
    except BadAnswer as error:
        return Unreadable(page.source, ReasonCode.INVALID, str(error))
    spent(input_tokens=answer.input_tokens, output_tokens=answer.output_tokens, cost=answer.cost or 0)
    return answer.invoice


# ── match ───────────────────────────────────────────────────────────────────────────────────────────


@step(
    sources=[
        Sql(OUTSIDE.orders, "select number, supplier_id, supplier, currency, status from orders order by number"),
        Sql(OUTSIDE.orders, "select * from order_lines order by order_id, position"),
    ],
    verify=[unique("id"), no_empties("id", "subject", "detail"), every_unreadable_file_is_named],
    why="depended_on",
    next="Post the discrepancies to the accounting queue.",
)
def match(readings: list[Reading]) -> list[Discrepancy]:
    """Compare the month's invoices with the purchase orders."""
    return discrepancies(readings, load_orders(OUTSIDE.orders))


# ── post ────────────────────────────────────────────────────────────────────────────────────────────


def find_posted(key: Key, discrepancy: Discrepancy) -> Found[Receipt] | NotFound:
    """Ask the queue for a key. A queue that cannot say raises, which counts as *cannot tell*, never as *not found*."""
    receipt = find_exception(OUTSIDE.accounting_url, str(key))
    return NotFound() if receipt is None else Found(receipt, ref=receipt.ref)


@effect(
    key=lambda discrepancy: discrepancy.id,
    scope="task",
    lookup=find_posted,
    settle=OUTSIDE.settle,
    key_lifetime=timedelta(hours=24),
    retry=LATER,
    rejected=NOTHING_HAPPENED,
    ref=lambda receipt: receipt.ref,
    shadow=lambda discrepancy: Receipt(f"would be {discrepancy.id}"),
    permission="accounting:write",
    provider="accounting queue",
    next="Post the rest of the batch.",
)
def post(key: Key, discrepancy: Discrepancy) -> Receipt:
    """Put one discrepancy into the accounting queue."""
    return post_exception(OUTSIDE.accounting_url, str(key), asdict(discrepancy))


@step(
    verify=[matches_count_of("batch"), no_empties("ref"), unique("ref")],
    why="review",
    next="Post the next batch; after the last one, write to the suppliers.",
)
def post_batch(batch: list[Discrepancy]) -> list[Posted]:
    """Post a handful of discrepancies; its checkpoint says that all of them have their reference."""
    return [Posted(one, receipt.ref) for one, receipt in zip(batch, post.map(batch), strict=True)]


# ── notify ──────────────────────────────────────────────────────────────────────────────────────────


def message_id_of(key: Key) -> str:
    """Derive the Message-ID from the key: the only thing by which this provider knows a mail again."""
    return f"<{key}@{OUR_DOMAIN}>"


def find_sent(key: Key, notice: Notice) -> Found[str] | NotFound:
    """Look for the mail in the provider's sent folder."""
    message_id = message_id_of(key)
    return Found(message_id, ref=message_id) if find_in_sent(OUTSIDE.sent, message_id) else NotFound()


@effect(
    key=lambda notice: f"{notice.to} {notice.month}",
    scope="task",
    lookup=find_sent,
    settle=OUTSIDE.settle,
    retry=LATER,
    rejected=NOTHING_HAPPENED,
    ref=lambda message_id: message_id,
    shadow=lambda notice: f"would be a mail to {notice.to}",
    permission="mail:send",
    provider="mail provider",
    next="Write to the next supplier.",
)
def notify(key: Key, notice: Notice) -> str:
    """Send one supplier the list of what has to be corrected."""
    message_id = message_id_of(key)
    send(OUTSIDE.smtp_host, OUTSIDE.smtp_port, mail_of(notice, message_id))
    return message_id


def notified(notice: Notice) -> Mailed:
    """Write to one supplier; an address that the provider refuses is a line in the report, not the end of the month."""
    try:
        return Mailed(notice.to, notify(notice))
    except StepFailed as refused:
        return Mailed(notice.to, message_id="", refused=str(refused.error))


# ── the task ────────────────────────────────────────────────────────────────────────────────────────


@task(instructions=PROMPT, model=OUTSIDE.model, permissions=["accounting:write", "mail:send"], reads=OUTSIDE.reads)
def reconcile(month: str, mailbox: Path = Path("mail")) -> Report:
    """Reconcile the invoices in `mailbox` (a Maildir or a folder of .eml files; or IMAP, see settings)."""
    collected = OUTSIDE.collect(mailbox)
    attachments = [found for found in collected if isinstance(found, Attachment)]
    unusable = [Reading(it.mail_id, it.sender, it.name, it) for it in collected if not isinstance(it, Attachment)]

    readings = extract.map(attachments, concurrency=OUTSIDE.at_once) + unusable
    found = match(readings)
    batches = post_batch.map([found[start : start + BATCH] for start in range(0, len(found), BATCH)])
    mails = [notified(notice) for notice in notices_of(month, found, readings)]

    return Report.of(month, readings, [posted for batch in batches for posted in batch], mails)
