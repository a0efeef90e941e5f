"""What the printed record shows above the journal: facts, proofs, people, effects, steps and stops, as rows. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from milepost.audit.account import Account, Sends, is_stop, record_of
from milepost.audit.contents import Heading, who
from milepost.audit.lines import Line
from milepost.audit.plain import escaped
from milepost.records.model import (
    Data,
    EffectRefused,
    EffectShadowed,
    IntentRecorded,
    OutcomeRecorded,
    QuestionAsked,
    Record,
    RunStarted,
    StepFailedNoted,
    StepVerified,
)
from milepost.views.summaries import outcome_marks, summary
from milepost.views.words import clock_time, cost, counted, lasting

Row = Iterable[object]


@dataclass(frozen=True, slots=True)
class Section:
    """A table of the page: its title, its columns, its rows from the lines, what is said without any."""

    title: str
    columns: tuple[str, ...]
    rows: Callable[[Iterable[Line]], Iterator[Row]]
    nothing: str


# ── the top of the page ─────────────────────────────────────────────────────────────────────────────


def facts_of(heading: Heading, account: Account) -> Iterator[str]:
    """Yield the summary: the run's name, whether it was proven, what it comes to."""
    yield f"<h1>Run {escaped(heading.run_id)}</h1>"
    word, said = ("proven", "Proven") if heading.proven else ("unproven", "NOT proven")
    yield f'<p class="{word}">{said} when it was exported: {escaped(_by_and_at(heading))}.</p>'
    yield "<dl>"
    for name, value in _facts(heading, account):
        yield f"<dt>{escaped(name)}</dt><dd>{escaped(value)}</dd>"
    yield "</dl>"
    yield "<h2>What was proven</h2><table>"
    for verdict in heading.verdicts:
        state = "holds" if verdict.ok else "DOES NOT HOLD"
        yield f"<tr><td>{escaped(verdict.what)}</td><td>{state}</td><td>{escaped(verdict.found)}</td></tr>"
    yield "</table>"
    yield "<p>Check this file anywhere, without the store: <code>milepost audit verify FILE</code>.</p>"


def _by_and_at(heading: Heading) -> str:
    return f"by {heading.exported_by} at {clock_time(heading.exported_at)} with Milepost {heading.milepost}"


def _facts(heading: Heading, account: Account) -> Iterator[tuple[str, str]]:
    started = account.started
    yield "task", heading.task
    if started is not None:
        yield from _start_facts(heading, started)
    yield "ended", _ended(account)
    yield "resumes", f"{account.counts['run_resumed']}, {account.deaths} of them after a death"
    steps, effects = account.counts["step_verified"], account.counts["applied"]
    yield "done", f"{counted(steps, 'checkpoint')} verified, {counted(effects, 'effect')} applied"
    yield "models took", f"{_spent(account)} (of what finished)"
    yield "seals", f"with key {heading.seal_name}" if heading.seal_name else "digests without a key"
    yield "head", f"record {heading.head_seq}, {heading.head_seal}"


def _start_facts(heading: Heading, started: RunStarted) -> Iterator[tuple[str, str]]:
    yield "started", clock_time(started.at) + (f" by {by}" if (by := who(started)) else "")
    yield "where", f"{started.target} in {started.folder}"
    yield "inputs", f"fingerprint {started.inputs_fingerprint}, sha256 {started.inputs.digest}"
    yield "versions", _versions(started.versions)
    yield "permissions held", ", ".join(started.permissions) or "none"
    if started.shadow:
        yield "SHADOW", "nothing was sent to anybody; effects say what would have been"
    if started.promotion:
        yield "promoted by", f"run {started.promotion}"
    if started.limits:
        yield "limits", ", ".join(_limit(name, value) for name, value in sorted(started.limits.items()))
    if started.forked_from:
        yield "forked from", f"{started.forked_from} before {started.forked_at}, family {heading.family}"


def _limit(name: str, value: Any) -> str:
    """Say one limit; a rate is the only one that is not a single value."""
    return f"{name} {value['count']} in {value['per_s']:g} s" if isinstance(value, Mapping) else f"{name} {value}"


def _ended(account: Account) -> str:
    if account.ended is None:
        return f"not yet; last record {clock_time(account.last_at)}" if account.last_at else "not yet"
    return f"{clock_time(account.ended.at)}: {summary(account.ended)}"


def _spent(account: Account) -> str:
    costs = [f"{amount} {currency}".rstrip() for currency, amount in sorted(account.costs.items()) if amount]
    return ", ".join([f"{account.tokens:,} tokens", *costs]) if account.tokens or costs else "nothing was said"


def _versions(versions: Data) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(versions.items()))


# ── the tables ──────────────────────────────────────────────────────────────────────────────────────


def _records(lines: Iterable[Line]) -> Iterator[Record]:
    for line in lines:
        record = record_of(line)
        if record is not None:
            yield record


def _questions(lines: Iterable[Line]) -> Iterator[Row]:
    for r in _records(lines):
        if isinstance(r, QuestionAsked):
            choices = " · ".join(choice.name for choice in r.choices)
            yield clock_time(r.at), r.question_id, r.question_kind, r.path, r.sentence, choices, _terms(r.about)


def _terms(about: Data) -> str:
    """Say what an approval takes: how many of whom, by when, for which request; who may not give it."""
    told = {
        "approvals": about.get("approvals"),
        "of": ", ".join(about.get("approvers", ())),
        "within s": about.get("expires_s"),
        "not": ", ".join(about.get("agents", ())),
        "request": str(about["request"])[:16] + "…" if "request" in about else None,
        "edited by": about["edit"].get("by") if isinstance(about.get("edit"), dict) else None,
    }
    return "; ".join(f"{name} {value}" for name, value in told.items() if value)


def _answers(lines: Iterable[Line]) -> Iterator[Row]:
    for line in lines:
        if line.content["is"] == "answer":
            row = line.content["row"]
            counts = f"answer {row.get('place', 1)}" if row.get("place", 1) else "came too late"
            more = ", ".join(f"{n} {row[n]}" for n in ("door", "role", "ref", "result", "request") if row.get(n))
            yield clock_time(row["at"]), row["question_id"], row["choice"], row["by"], row.get("note", ""), counts, more
        elif line.content["is"] == "cancel":
            row = line.content["row"]
            yield clock_time(row["at"]), "", "cancel", row["by"], row.get("note", ""), "", ""


def _effects(lines: Iterable[Line]) -> Iterator[Row]:
    sends = Sends()
    for record in _records(lines):
        ended = sends.take(record)
        if ended is not None:
            yield _send(*ended)
        elif isinstance(record, EffectRefused):
            yield clock_time(record.at), record.path, "", "refused", "", "", "", record.permission, summary(record)
        elif isinstance(record, EffectShadowed):
            yield _shadowed(record)
    for intent in sends.left():
        yield _intent(intent, "last send, not known to be applied")


def _send(intent: IntentRecorded | None, outcome: OutcomeRecorded) -> Row:
    marks = [*outcome_marks(outcome), *([str(outcome.error)] if outcome.error else [])]
    return (
        clock_time(outcome.at),
        outcome.path,
        intent.provider if intent else "",
        outcome.outcome,
        outcome.key,
        outcome.ref or "",
        outcome.attempt,
        (intent.permission if intent else None) or "",
        "; ".join([*_request(intent), *marks]),
    )


def _intent(intent: IntentRecorded, says: str) -> Row:
    about = "; ".join([says, *_request(intent)])
    permission = intent.permission or ""
    return clock_time(intent.at), intent.path, intent.provider, "", intent.key, "", intent.attempt, permission, about


def _shadowed(r: EffectShadowed) -> Row:
    about = "; ".join([f"request {r.request_digest[:16]}…", *([f"after {r.would_ask}"] if r.would_ask else [])])
    return clock_time(r.at), r.path, r.provider, "SHADOW, not sent", r.key, "", "", r.permission or "", about


def _request(intent: IntentRecorded | None) -> list[str]:
    if intent is None:
        return []
    allowed = [f"allowed by {intent.answer}"] if intent.answer else []
    return [f"{intent.request_digest[:16]}…, sent after {clock_time(intent.at)}", *allowed]


def _steps(lines: Iterable[Line]) -> Iterator[Row]:
    for r in _records(lines):
        if isinstance(r, StepVerified):
            made = f"output {r.output.digest[:16]}…, inputs {r.inputs_fingerprint[:16]}…"
            made += f", sources {r.sources.digest[:16]}…" if r.sources is not None else ""
            took = ", ".join(part for part in (lasting(r.duration_s), cost(r.spent)) if part)
            checks = ", ".join(r.checks) or "none"
            yield clock_time(r.at), r.path, "verified", r.attempt, checks, took, _versions(r.versions), made
        elif isinstance(r, StepFailedNoted):
            yield clock_time(r.at), r.path, "failed", r.attempt, "", lasting(r.duration_s), "", str(r.error)


def _stops(lines: Iterable[Line]) -> Iterator[Row]:
    stopped = True
    for r in _records(lines):
        if r.kind == "run_resumed" and not stopped:
            yield "", "death", "", "the process before ended without a word"
        if is_stop(r):
            yield clock_time(r.at), r.kind, getattr(r, "path", None) or "", summary(r)
        stopped = r.kind == "run_ended"


SECTIONS = (
    Section(
        "Questions",
        ("when", "question", "kind", "about", "sentence", "choices", "takes"),
        _questions,
        "Nobody was asked anything.",
    ),
    Section(
        "Answers",
        ("when", "question", "choice", "who", "why", "", "with"),
        _answers,
        "Nobody had to answer anything.",
    ),
    Section(
        "Effects",
        ("when", "effect", "provider", "outcome", "key", "its reference", "try", "permission", "request"),
        _effects,
        "Nothing was sent.",
    ),
    Section(
        "Steps",
        ("when", "step", "stands", "try", "checks", "took", "versions", "made, and from what"),
        _steps,
        "No step has ended.",
    ),
    Section("Starts, stops and waits", ("when", "what", "where", ""), _stops, "Nothing was recorded."),
)
"""In the order of the page."""
