"""Data put in the order a page shows it: what a question is about, batches in place, defaults said once, days filled.

Changes no value and leaves none out. Pure; called by the templates.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from milepost.records.identity import Identity, is_same_person

CHANGE = re.compile(r"(?P<path>\$[^\s:]*|[^:]{1,200}): (?P<old>.*?) → (?P<new>.*)", re.DOTALL)
DAYS = 14
"""Days that a chart of health shows."""
QUIET_KINDS = frozenset(["outcome_unknown", "shadow_result_needed", "store_went_back"])
"""Questions whose answer is a fact only a person knows: no choice is put forward."""


# ── questions ──


def headline(question: Mapping[str, Any]) -> str:
    """Say what a question asks, short enough for a list; its sentence says it whole."""
    evidence = question.get("evidence")
    facts: Any = next(iter(evidence), {}) if isinstance(evidence, list) else evidence
    known = facts if isinstance(facts, Mapping) else {}
    asks = HEADLINES.get(question["kind"])
    return asks(question, known) if asks is not None else str(question["sentence"])


def _approval(question: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    if "redo" in {choice["name"] for choice in question["choices"]}:
        return f"Review what {question['path']} returned"
    return str(facts.get("summary") or f"Send {question['path']} to {facts.get('provider', 'its provider')}?")


def _source_changed(question: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    if "source" in facts:
        used = ", ".join(map(str, facts.get("used_by") or [])) or question["path"] or "the run"
        return f"{facts['source']} changed since {used} used it"
    return f"What {question['path'] or 'the run'} was given changed"


HEADLINES: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any]], str]] = {
    "approval": _approval,
    "source_changed": _source_changed,
    "request_changed": lambda q, f: f"{q['path']} was applied with another request",
    "plan_changed": lambda q, f: "The plan is another than before" + (f" at {q['path']}" if q["path"] else ""),
    "versions_changed": lambda q, f: f"{q['path'] or 'The task'} was made with other versions",
    "outcome_unknown": lambda q, f: f"Did {q['path']} happen at {f.get('provider', 'its provider')}?",
    "attempts_used": lambda q, f: f"{q['path'] or 'The run'} did not succeed {_times(f.get('starts'))}. Try again?",
    "limit_reached": lambda q, f: f"The limit on {f.get('limit', 'this run')} is reached. Go on?",
    "shadow_result_needed": lambda q, f: f"What would {q['path']} have returned?",
    "store_went_back": lambda q, f: "The store went back in time. Go on in doubt?",
}
"""What each kind of question asks; a kind without one is told by its sentence."""


def _times(count: Any) -> str:
    return f"in {count} starts" if isinstance(count, int) and count != 1 else "in its starts"


def leading(question: Mapping[str, Any]) -> str:
    """Return the choice that is put forward, "" when a person must say what they know."""
    return "" if question["kind"] in QUIET_KINDS or not question["choices"] else str(question["choices"][0]["name"])


def hindrance(question: Mapping[str, Any], visitor: Identity) -> str:
    """Say why an approval is not this visitor's to give, "" when nothing is known against it; the door judges again."""
    approval = question.get("approval")
    if not approval:
        return ""
    own = next((answer for answer in approval["given"] if is_same_person(answer["by"], visitor.name)), None)
    if own is not None:
        return f"You answered {own['choice']}; somebody else must answer as well."
    if any(is_same_person(visitor.name, agent) for agent in approval["not"]):
        return f"{visitor.name} runs the task, and nobody allows what they ask for themselves."
    if approval["approvers"] and visitor.role_among(approval["approvers"]) is None:
        return f"{', '.join(approval['approvers'])} may answer, {visitor.name} may not."
    return ""


def arranged(questions: Sequence[Mapping[str, Any]], batches: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the questions of a page in order, those of one batch together where its first one stands."""
    batch_of = {q["question_id"]: batch for batch in batches for q in batch["questions"]}
    whole = {question["question_id"]: question for question in questions}
    told: set[int] = set()
    for question in questions:
        batch = batch_of.get(question["question_id"])
        if batch is None:
            yield {"question": question, "batch": None}
        elif id(batch) not in told:
            told.add(id(batch))
            items = [whole.get(q["question_id"], {"evidence": None, **q}) for q in batch["questions"]]
            yield {"question": question, "batch": {**batch, "questions": items}}


def parts_shown(parts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the parts of a question's evidence: a list that reads as one line is a fact, what binds comes last."""
    found: list[dict[str, Any]] = []
    for part in parts:
        if part["kind"] == "facts":
            found.append({**part, "value": {name.replace("_", " "): value for name, value in part["value"].items()}})
        elif part["kind"] == "value" and found and found[-1]["kind"] == "facts" and _is_line(part["value"]):
            found[-1]["value"][part["name"]] = part["value"]
        else:
            found.append({**part})
    return sorted(found, key=lambda part: bool(part["name"] == "binding"))


def _is_line(value: Any) -> bool:
    return isinstance(value, list) and are_plain(value)


def change_parts(text: str) -> dict[str, str | None]:
    """Take a change apart: where, what was there, what is there now; `old` and `new` are None for one only told."""
    found = CHANGE.fullmatch(text)
    if found is None:
        return {"path": text, "old": None, "new": None}
    path = found["path"].removeprefix("$.").removeprefix("arguments.")
    return {"path": path, "old": found["old"], "new": found["new"]}


def are_rows(value: Sequence[Any]) -> bool:
    """Say whether a list reads as a table: objects with the same few plain fields."""
    if not value or not all(isinstance(item, Mapping) and item for item in value):
        return False
    fields = [*value[0]]
    plain = all(not isinstance(inner, (Mapping, list)) for item in value for inner in item.values())
    return plain and len(fields) <= 6 and all([*item] == fields for item in value)


def are_plain(value: Sequence[Any]) -> bool:
    """Say whether a list holds only short plain values, which read as one line."""
    return all(not isinstance(item, (Mapping, list)) and len(str(item)) <= 80 for item in value)


# ── a task's role ──


def role_shown(role: Mapping[str, Any]) -> dict[str, Any]:
    """Return the calls a task names, in its order, with what is true of nearly all of a kind said once.

    Those that its module declares and it does not name are `others`.
    """
    calls = [{**call, "warns": _warnings(role["warnings"], call)} for call in role["calls"]]
    named = sorted((call for call in calls if call["named_at"] is not None), key=lambda call: int(call["named_at"]))
    usual = {kind: _usual([c for c in named if c["kind"] == kind]) for kind in ("step", "effect")}
    return {
        "usual": {kind: facts for kind, facts in usual.items() if facts},
        "calls": [{**call, "own": _own(call["facts"], usual[call["kind"]])} for call in named],
        "others": [call for call in calls if call not in named],
        "warning_count": sum(bool(call["warns"]) for call in named),
    }


def _warnings(warnings: Sequence[str], call: Mapping[str, Any]) -> list[str]:
    """Return what is warned of at one call, a warning a piece."""
    start = f"{call['kind']} {call['name']} "
    return [part for text in warnings if text.startswith(start) for part in text.removeprefix(start).split("; ")]


def _usual(calls: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the facts that every call of a kind has and most share."""
    if len(calls) < 3:
        return {}
    names = [name for name in calls[0]["facts"] if all(name in call["facts"] for call in calls)]
    counted = {name: Counter(call["facts"][name] for call in calls).most_common(1)[0] for name in names}
    return {name: value for name, (value, count) in counted.items() if count > 1 and count * 2 > len(calls)}


def _own(facts: Mapping[str, str], usual: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in facts.items() if usual.get(name) != value}


# ── days ──


def last_days(days: Sequence[Mapping[str, Any]], today: str, what: str) -> list[tuple[str, float]]:
    """Return one number for each of the last days, none left out."""
    by_day = {day["day"]: float(day[what]) for day in days}
    end = date.fromisoformat(today)
    names = [(end - timedelta(days=back)).isoformat() for back in reversed(range(DAYS))]
    return [(name, by_day.get(name, 0.0)) for name in names]
