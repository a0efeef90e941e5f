"""The books of a month after the task is through: what the providers have, and what the journal points at.

`differences` decides whether the demo succeeds. Asks the world from outside the task; its own records are not taken
for proof. Called by `__main__` and by the demo's tests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email import message_from_bytes, policy
from hashlib import sha256
from typing import TypeVar

from invoices.demo.journal import Journal, read_journal
from invoices.demo.stage import RUN, Stage

T = TypeVar("T")
SHOWN_MAX = 5


@dataclass(frozen=True, slots=True)
class Books:
    """`entries`: key → (reference, digest of what was accepted), each acceptance. `mails`: Message-ID → digests."""

    entries: Mapping[str, Sequence[tuple[str, str]]]
    mails: Mapping[str, Sequence[str]]
    journal: Journal
    model_calls: int

    def duplicate_count(self) -> int:
        """Count what a provider has more than once."""
        return sum(len(found) - 1 for found in (*self.entries.values(), *self.mails.values()))


def read_books(stage: Stage) -> Books:
    """Read what the providers and the journal hold now."""
    entries: dict[str, list[tuple[str, str]]] = {}
    for entry in stage.world.ledger()["entries"]:
        body = json.dumps(entry["exception"], sort_keys=True).encode()
        entries.setdefault(entry["key"], []).append((entry["ref"], digest_of(body)))
    mails: dict[str, list[str]] = {}
    for content in stage.world.sent_mails():
        message_id, digest = _mail(content)
        mails.setdefault(message_id, []).append(digest)
    return Books(entries, mails, read_journal(stage.store, RUN), stage.world.model_calls())


def digest_of(content: bytes) -> str:
    """Give the SHA-256 of some bytes, in hex."""
    return sha256(content).hexdigest()


def _mail(content: bytes) -> tuple[str, str]:
    """Give a mail's Message-ID and the digest of all that must not differ: everything but its Date."""
    mail = message_from_bytes(content, policy=policy.default)
    body = mail.get_body(("plain",))
    said = body.get_content() if body is not None else ""
    parts = [str(mail[name]) for name in ("Message-ID", "From", "To", "Subject")]
    return parts[0], digest_of("\n".join([*parts, said]).encode())


def differences(undisturbed: Books, killed: Books, *, model_calls_more_max: int) -> list[str]:
    """Say everything in which the killed month differs; nothing: the two are the same.

    `model_calls_more_max`: calls that died with their process before anything could be kept.
    """
    more = killed.model_calls - undisturbed.model_calls
    found = [
        *_different("accounting queue, key", undisturbed.entries, killed.entries),
        *_different("sent mail", undisturbed.mails, killed.mails),
        *_different("output of", undisturbed.journal.outputs(), killed.journal.outputs()),
        *_different("reference of", undisturbed.journal.references(), killed.journal.references()),
    ]
    found += [f"{books.duplicate_count()} duplicates" for books in (undisturbed, killed) if books.duplicate_count()]
    if undisturbed.journal.report_digest != killed.journal.report_digest:
        found.append("the report is another one")
    if not 0 <= more <= model_calls_more_max:
        found.append(f"expected at most {model_calls_more_max} more model calls, found {more}")
    return found


def _different(what: str, expected: Mapping[str, T], found: Mapping[str, T]) -> list[str]:
    names = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
    told = [f"{what} {name}: expected {expected.get(name)}, found {found.get(name)}" for name in names[:SHOWN_MAX]]
    return told + ([f"{what} …: {len(names) - SHOWN_MAX} more differ"] if len(names) > SHOWN_MAX else [])
