"""Approvals as people are shown them: who may give one and who has, how long it holds, what stands where. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from milepost.protocol.snapshot import Snapshot
from milepost.protocol.state import ApprovalState
from milepost.records.model import QuestionKind
from milepost.records.naming import body_of
from milepost.records.rows import AnswerRow
from milepost.records.times import format_time, parse_time
from milepost.runtime.answering import asked
from milepost.stores.contract import QuestionRow
from milepost.views.words import clock_time, counted, lasting


def approval_object(row: QuestionRow, answers: Sequence[AnswerRow]) -> dict[str, Any]:
    """Return what an approval needs and has, of the answers to it; nothing for any other question."""
    if row.kind != QuestionKind.APPROVAL:
        return {}
    about = asked(row).about
    given = sorted((a for a in answers if a.accepted), key=lambda a: a.place)
    seconds = about.get("expires_s")
    until = parse_time(given[0].at) + timedelta(seconds=seconds) if given and seconds is not None else None
    return {
        "approvals": int(about["approvals"]),
        "approvers": list(about["approvers"]),
        "not": [agent for agent in about["agents"] if agent],
        "given": [{"choice": a.choice, "by": a.by, "role": a.role, "at": a.at, "note": a.note} for a in given],
        "holds_s": seconds,
        "until": format_time(until) if until is not None else None,
    }


def so_far(row: QuestionRow, answers: Sequence[AnswerRow]) -> str:
    """Say how many of several approvals a question has, by the answers to it; "" when it has none or needs one only."""
    needed = int(asked(row).about.get("approvals", 1))
    given = sum(answer.accepted for answer in answers)
    return f"{given} of {needed}" if given and needed > 1 else ""


def approval_lines(found: dict[str, Any]) -> list[str]:
    """Say who may approve, who has, and how long it holds: nothing for what is no approval."""
    if not found:
        return []
    who, agents = ", ".join(found["approvers"]) or "anybody", ", ".join(found["not"]) or "the agent"
    lines = [f"Needs {counted(found['approvals'], 'approval')} of {who}, but not of {agents}."]
    lines += [f"  {a['choice']} by {a['by']} at {clock_time(a['at'])}{_why(a)}" for a in found["given"]]
    if found["until"] is not None:
        lines.append(f"  What is given holds until {clock_time(found['until'])}.")
    elif found["holds_s"] is not None:
        lines.append(f"  An approval holds {lasting(found['holds_s'])} from when it is given, until it is used.")
    return [*lines, ""]


def evidence_in_order(evidence: Any) -> Any:
    """Return the evidence of an approval as people read it: what is new and the exact request first, digests last."""
    if not isinstance(evidence, dict) or "binding" not in evidence:
        return evidence
    first = [name for name in ("asked_anew", "edited_by", "request", "output") if name in evidence]
    rest = [name for name in evidence if name not in (*first, "binding", "summary")]
    return {name: evidence[name] for name in (*first, *rest, "binding")}


def request_of(evidence: Any) -> str | None:
    """Return the arguments that were asked about, as an edit of them begins: JSON in one line."""
    request = evidence.get("request") if isinstance(evidence, dict) else None
    arguments = request.get("arguments") if isinstance(request, dict) else None
    return json.dumps(arguments, ensure_ascii=False) if arguments else None


def _why(given: dict[str, Any]) -> str:
    return f": {given['note']}" if given["note"] else ""


# ── in the table of a run ───────────────────────────────────────────────────────────────────────────


def waiting_calls(s: Snapshot, body: str) -> Iterator[tuple[str, str, str]]:
    """Yield the calls of a body that have no record but an approval: path, how it stands, what is said about it."""
    for path, state in s.approvals.items():
        if body_of(path) == body and path not in s.effects and path not in s.steps:
            yield path, _stands(state), said_of(state)


def said_of(state: ApprovalState) -> str:
    """Say in a few words who decided what, or who may."""
    if not state.given:
        who = ", ".join(state.question.about["approvers"]) or "somebody"
        return f"asks {who} ({state.question.question_id})"
    by: dict[str, list[str]] = {}
    for answer in reversed(state.given):  # what settled it comes first
        by.setdefault(_DONE.get(answer.choice, answer.choice), []).insert(0, answer.by)
    return ", ".join(f"{done} by {' and '.join(dict.fromkeys(names))}" for done, names in by.items())


_DONE = {"approve": "approved", "edit": "edited", "decline": "declined", "redo": "sent back"}


def _stands(state: ApprovalState) -> str:
    last = state.given[-1].choice if state.given else ""
    return {"": "asking", "decline": "declined"}.get(last, "approved")
