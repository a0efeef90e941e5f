"""What a notification says. Pure.

Its text is inert: whatever comes from a run cannot move a cursor, hide or reorder text, show an image, make a link or
call a whole channel in the program that shows it. Links and commands are only ours.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import quote

from milepost.records.secret import redact
from milepost.records.shown import inert
from milepost.runtime.answering import asked
from milepost.stores.contract import QuestionRow
from milepost.views.words import clock_time

TEXT_LENGTH_MAX = 1500
"""Characters of a question's sentence in a notification; `milepost inbox` shows all of it."""
SHORT_LENGTH_MAX = 160
"""The same where several questions are told at once."""
BUNDLE_SHOWN_MAX = 10
"""Questions named in one notification about several; the others are counted."""


class Reason(StrEnum):
    """Why somebody is told: the question is new, it waits, it waits too long."""

    ASKED = "asked"
    REMINDER = "reminder"
    ESCALATION = "escalation"


@dataclass(frozen=True, slots=True)
class Message:
    """One notification: what mail and chat show, and the same as data for a command."""

    title: str
    text: str
    data: dict[str, Any]


_FIRST = {
    Reason.ASKED: "A run asks",
    Reason.REMINDER: "Reminder: a run still asks",
    Reason.ESCALATION: "Nobody has answered: a run still asks",
}


def question_message(row: QuestionRow, reason: Reason, task: str, console_url: str) -> Message:
    """Return what is said about one open question."""
    kind, run_id = plain(row.kind), plain(row.run_id)
    link = f"{console_url.rstrip('/')}/question?id={quote(row.question_id, safe='')}" if console_url else ""
    record = asked(row)
    lines = [
        plain(row.sentence)[:TEXT_LENGTH_MAX],
        "",
        f"Question {row.question_id} ({kind}) of run {run_id}, task {plain(task)}, asked {clock_time(row.asked_at)}.",
        f"Choices: {', '.join(choice.name for choice in record.choices)}.",
        *_who_decides(record.about),
        "",
        f"milepost inbox {row.question_id}   (the evidence, and what each choice will do)",
        *([link] if link else []),
    ]
    data = {
        "reason": reason.value,
        "question_id": row.question_id,
        "run_id": row.run_id,
        "task": inert(task),
        "kind": row.kind,
        "path": inert(row.path),
        "sentence": inert(redact(row.sentence)),
        "asked_at": row.asked_at,
        "choices": [{"name": choice.name, "does": inert(choice.does)} for choice in record.choices],
        "approvers": [inert(name) for name in record.about.get("approvers", ())],
        "inbox": f"milepost inbox {row.question_id}",
        "resume": f"milepost resume {shlex.quote(row.run_id)}",
        "link": link or None,
    }
    return Message(f"{_FIRST[reason]}: {run_id} ({kind})", "\n".join(lines), data)


def _who_decides(about: Mapping[str, Any]) -> list[str]:
    """Say who may approve and how many must, where the question is an approval."""
    if "approvals" not in about:
        return []
    who = ", ".join(plain(name) for name in about.get("approvers", ())) or "anybody but the agent"
    return [f"May approve: {who}; {about['approvals']} must."]


def bundle_message(rows: Sequence[QuestionRow], reason: Reason, task: str, console_url: str) -> Message:
    """Return what is said about several open questions of one run at once, so that nobody gets a hundred mails."""
    if len(rows) == 1:
        return question_message(rows[0], reason, task, console_url)
    kind, run_id = plain(rows[0].kind), plain(rows[0].run_id)
    shown = [f"{row.question_id}  {plain(row.sentence)[:SHORT_LENGTH_MAX]}" for row in rows[:BUNDLE_SHOWN_MAX]]
    more = [f"and {len(rows) - len(shown)} more"] if len(rows) > len(shown) else []
    link = [f"{console_url.rstrip('/')}/inbox"] if console_url else []
    about = f"{len(rows)} questions ({kind}) of run {run_id}, task {plain(task)}:"
    text = "\n".join([about, "", *shown, *more, "", "milepost inbox   (lists them all)", *link])
    return Message(f"{_FIRST[reason]} {len(rows)} questions: {run_id} ({kind})", text, {"reason": reason.value})


def trial_message(at: str) -> Message:
    """Return what `milepost notify --test` sends."""
    text = f"A test of `milepost notify`, sent {clock_time(at)}. No run asks anything."
    return Message("Milepost: a test", text, {"reason": "test", "sentence": text})


_DEFANGED = (
    (re.compile(r"\]\("), "] ("),  # [text](link) and ![alt](image)
    (re.compile(r"!\["), "! ["),
    (re.compile(r"<"), "‹"),  # <https://…>, <!channel>, HTML
    (re.compile(r">"), "›"),
    (re.compile(r"(\w)://"), r"\1: //"),  # what programs make links of by themselves
    (re.compile(r"\b(www)\.", re.IGNORECASE), r"\1 ."),
    (re.compile(r"(?<!\w)@"), "(at)"),  # @channel, @everyone
    (re.compile(r"`"), "'"),
)


def plain(text: object) -> str:
    """Return a text from a run as mail and chat programs may show it: one line, inert, without secrets."""
    shown = inert(redact(str(text)))
    for pattern, instead in _DEFANGED:
        shown = pattern.sub(instead, shown)
    return shown
