"""A run as a whole, as lines: its header, what is open, what comes next. Called by `show`."""

from __future__ import annotations

import shlex

from milepost.protocol.spec import changed_versions
from milepost.records.model import VersionsNoted
from milepost.runtime.opening import Opened
from milepost.runtime.standing import Standing, unanswered, waits_until
from milepost.stores.contract import RunRow, Store
from milepost.views.limits import limit_uses
from milepost.views.opened import now
from milepost.views.overview import is_unread
from milepost.views.steps import spent_in_all
from milepost.views.summaries import summary
from milepost.views.words import ago, clock_time, cost, counted, until

FAMILY_MAX = 100
"""Runs of a family among which the newest is looked for: those at its end may be forks that died half made."""


def header_lines(opened: Opened, standing: Standing) -> list[str]:
    """Say what the run is, where it stands, who works on it, and by which versions."""
    row, s, moment = opened.row, opened.snapshot, now()
    holder = f", worked on by {standing.holder}" if standing.holder else ""
    started = f"started {clock_time(row.started_at)} ({ago(row.started_at, moment)})"
    times = f"{started}, last record {ago(row.progress.at, moment)}"
    shadow = "SHADOW " if row.shadow else ""
    about = f"{shadow}run {row.run_id} · task {row.task} · {standing.word}{holder}"
    if is_unread(opened):
        return [about, times, "steps, effects, versions, what is open: cannot tell, its records are sealed"]
    lines = [
        about,
        f"{times}, {counted(s.resumes, 'resume')}",
        f"{counted(s.verified_count, 'step')} verified, {_effects(opened)}{_cost(opened)}",
    ]
    used = ", ".join(map(str, limit_uses(s, moment)))
    if used:
        lines.append(f"limits: {used}")
    if s.started is not None and s.started.forked_from:
        lines.append(f"forked from {s.started.forked_from} before {s.started.forked_at}, family {s.started.family}")
    lines.append("versions: " + (", ".join(f"{name} {value}" for name, value in s.versions.items()) or "none"))
    changes = [f"{ago(r.at, moment)}: {r.what or 'task'} {changed_versions(r.old, r.new)}" for r in _changes(opened)]
    lines += [f"  changed {line}" for line in changes[-3:]]
    if s.ended is not None and s.ended.error is not None:
        lines.append(summary(s.ended))
    return lines


def _effects(opened: Opened) -> str:
    s = opened.snapshot
    if s.is_shadow:
        return f"{counted(s.shadowed_count, 'effect')} shadowed: NOTHING WAS SENT"
    return f"{counted(s.applied_count, 'effect')} applied"


def _cost(opened: Opened) -> str:
    spent = spent_in_all(opened.snapshot)
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
        "unstarted": [f"its process died before the first record; {_again(opened.row)} starts it again"],
        "done": [f"type: milepost resume {run_id}   (prints the recorded result)"],
        "stopped": [_fork(store, opened.row)],
        "cancelled": [_fork(store, opened.row)],
    }.get(standing.word, [f"type: milepost resume {run_id} --check   (then without --check)"])


def _again(row: RunRow) -> str:
    run_id = shlex.quote(row.run_id)
    return f"milepost {'run …' if row.family == row.run_id else 'fork RUN --from STEP'} --run-id {run_id}"


def _fork(store: Store, row: RunRow) -> str:
    """Say how to go on from an ended run: the newest of its family is the one that may be forked."""
    family = [run.run_id for run in store.runs(family=row.family, limit=FAMILY_MAX) if run.head.seq]
    newest = family[0] if family else row.run_id
    why = "" if newest == row.run_id else f"   ({row.run_id} was forked before: {newest} is the newest of its family)"
    return f"type: milepost fork {shlex.quote(newest)} --from STEP{why}"
