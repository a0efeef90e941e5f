"""A run as a whole: its header, what is open, what comes next; as lines and as data. Called by `show` and `brief`."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import asdict
from typing import Any

from milepost.cli.opened import now
from milepost.cli.runs import run_object
from milepost.cli.steps import steps, total_spent
from milepost.cli.summaries import summary
from milepost.cli.words import ago, clock_time, cost, counted, until
from milepost.errors import SealKeyMissing
from milepost.protocol.spec import changed_versions
from milepost.records.model import VersionsNoted
from milepost.runtime.opening import Opened
from milepost.runtime.standing import Standing, unanswered, waits_until
from milepost.stores.contract import Store

IN_RECORDS = ("resumes", "versions", "spent", "forked_from", "counts", "steps", "open")
"""What is told from a run's records; the rest stands in its row."""


def is_unread(opened: Opened) -> bool:
    """Say whether nothing of a run could be read: it is sealed, and its key is not here."""
    return isinstance(opened.refusal, SealKeyMissing)


def header_lines(opened: Opened, standing: Standing) -> list[str]:
    """Say what the run is, where it stands, who works on it, and by which versions."""
    row, s, moment = opened.row, opened.snapshot, now()
    holder = f", worked on by {standing.holder}" if standing.holder else ""
    started = f"started {clock_time(row.started_at)} ({ago(row.started_at, moment)})"
    times = f"{started}, last record {ago(row.progress.at, moment)}"
    about = f"run {row.run_id} · task {row.task} · {standing.word}{holder}"
    if is_unread(opened):
        return [about, times, "steps, effects, versions, what is open: cannot tell, its records are sealed"]
    lines = [
        about,
        f"{times}, {counted(s.resumes, 'resume')}",
        f"{counted(s.verified_count, 'step')} verified, {counted(s.applied_count, 'effect')} applied{_cost(opened)}",
    ]
    if s.started is not None and s.started.forked_from:
        lines.append(f"forked from {s.started.forked_from} before {s.started.forked_at}, family {s.started.family}")
    lines.append("versions: " + (", ".join(f"{name} {value}" for name, value in s.versions.items()) or "none"))
    changes = [f"{ago(r.at, moment)}: {r.what or 'task'} {changed_versions(r.old, r.new)}" for r in _changes(opened)]
    lines += [f"  changed {line}" for line in changes[-3:]]
    if s.ended is not None and s.ended.error is not None:
        lines.append(summary(s.ended))
    return lines


def _cost(opened: Opened) -> str:
    spent = total_spent([row.spent for row in steps(opened) if opened.snapshot.counts(row.path)])
    return f", {cost(spent)}" if spent else ""


def _changes(opened: Opened) -> list[VersionsNoted]:
    return [record for _, record in opened.records if isinstance(record, VersionsNoted)]


def open_lines(store: Store, opened: Opened) -> list[str]:
    """Say what is open: questions with the command that shows them, intents without an outcome, waits."""
    s = opened.snapshot
    todo = {row.question_id for row in unanswered(store, opened.row.run_id)}
    lines = [
        f"  {q.question_id} {q.sentence}" + ("" if q.question_id in todo else " (answered; a resume acts on it)")
        for q in s.questions.values()
    ]
    lines += [
        f"  {state.path}: sent or about to be at {clock_time(send.intent.at)}, outcome not known, key {send.intent.key}"
        for state, send in s.open_intents()
    ]
    moment = waits_until(s)
    if moment is not None:
        lines.append(f"  waits until {clock_time(moment)} ({until(moment, now())})")
    return ["", "open:", *lines] if lines else []


def next_lines(store: Store, opened: Opened, standing: Standing) -> list[str]:
    """Say what comes next: the plan's next action, and what a person types."""
    ended = standing.word in ("done", "stopped", "cancelled")
    action = [f"next: {opened.snapshot.next_action}"] if opened.snapshot.next_action and not ended else []
    lines = [*action, *_command(store, opened, standing)]
    return ["", *lines] if lines else []


def _command(store: Store, opened: Opened, standing: Standing) -> list[str]:
    run_id = shlex.quote(opened.row.run_id)
    asked = unanswered(store, opened.row.run_id)
    if asked and standing.word == "asking":
        return [f"type: milepost inbox {row.question_id}" for row in asked[:5]]
    return {
        "running": [],
        "unstarted": [f"its process died before the first record; milepost run … --run-id {run_id} starts it again"],
        "done": [f"type: milepost resume {run_id}   (prints the recorded result)"],
        "stopped": [f"type: milepost fork {run_id} --from STEP"],
        "cancelled": [f"type: milepost fork {run_id} --from STEP"],
    }.get(standing.word, [f"type: milepost resume {run_id} --check   (then without --check)"])


def overview_object(store: Store, opened: Opened, standing: Standing) -> dict[str, Any]:
    """Return everything `show` tells as data; what cannot be told without a key is null."""
    if is_unread(opened):
        return {**run_object(opened.row, standing), **dict.fromkeys(IN_RECORDS)}
    s = opened.snapshot
    rows = steps(opened)
    todo = {row.question_id for row in unanswered(store, opened.row.run_id)}
    return {
        **run_object(opened.row, standing),
        "resumes": s.resumes,
        "versions": dict(s.versions),
        "spent": total_spent([row.spent for row in rows if s.counts(row.path)]),
        "forked_from": s.started.forked_from if s.started else None,
        "counts": dict(Counter(row.stands for row in rows)),
        "steps": [{**asdict(row), "counts": s.counts(row.path)} for row in rows],
        "open": {
            "questions": [
                {
                    "question_id": q.question_id,
                    "kind": q.question_kind,
                    "sentence": q.sentence,
                    "path": q.path,
                    "answered": q.question_id not in todo,
                }
                for q in s.questions.values()
            ],
            "intents": [
                {"path": state.path, "key": send.intent.key, "provider": send.intent.provider, "at": send.intent.at}
                for state, send in s.open_intents()
            ],
            "waits_until": waits_until(s),
        },
    }
