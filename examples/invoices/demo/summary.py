"""The demo's result as JSON data, for `--json`: the verdict, both books in numbers and digests, what was saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from invoices.demo.books import Books


def summary_of(undisturbed: Books, killed: Books, found: Sequence[str]) -> dict[str, Any]:
    """Sum the comparison up as JSON values."""
    return {
        "equal": not found,
        "differences": list(found),
        "undisturbed": _books(undisturbed),
        "killed": _books(killed),
        "saved": asdict(killed.journal.saved),
    }


def _books(books: Books) -> dict[str, Any]:
    journal = books.journal
    return {
        "entries": {key: [ref for ref, _ in found] for key, found in books.entries.items()},
        "mails": {message_id: len(found) for message_id, found in books.mails.items()},
        "duplicate_count": books.duplicate_count(),
        "outputs": journal.outputs(),
        "report_digest": journal.report_digest,
        "model_calls": books.model_calls,
        "resume_count": journal.resume_count,
        "recovered": [outcome.path for outcome in journal.recovered()],
    }
