"""How a call asks a person: the question with the call's own facts, and the two questions any call may have. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from milepost.protocol.approval import rule_of, who_decides
from milepost.protocol.call import Call
from milepost.protocol.ops import Load, Now, Steps
from milepost.protocol.questions import ask, counted, done_before, ended, listed
from milepost.records.canonical import parse
from milepost.records.compare import difference
from milepost.records.model import Pointer, QuestionKind

_LETS_HAPPEN = (QuestionKind.OUTCOME_UNKNOWN, QuestionKind.ATTEMPTS_USED)


def asking(
    call: Call[Any],
    kind: QuestionKind,
    *,
    sentence: str,
    evidence: Any = None,
    about: Mapping[str, Any] | None = None,
    without: Sequence[str] = (),
    once: str = "",
) -> Steps[None]:
    """Ask about a call. Never goes on: the branch is parked and unwound.

    Who may approve it also says what became of it and whether it is tried again: the answer lets it happen.
    """
    now = yield Now()
    who = who_decides(call.snapshot, call.path, rule_of(call, "before")) if kind in _LETS_HAPPEN else {}
    yield ask(
        kind,
        call.snapshot,
        run_id=call.run_id,
        at=now.text,
        path=call.path,
        sentence=sentence,
        evidence=evidence,
        about={**(about or {}), **who},
        without=without,
        once=once,
    )


def changes_since(kept: Pointer, what: str, now: bytes) -> Steps[list[str]]:
    """Say what differs between JSON that was kept and what stands in its place now."""
    old = parse((yield Load(kept, what)))
    return [str(change) for change in difference(old, parse(now))]


def ask_about_plan(call: Call[Any], unclaimed: Sequence[str], besides: Sequence[str] = ()) -> Steps[None]:
    """Ask before a call that no record knows runs while what stands in its place is still unclaimed.

    Accepting also settles `besides`: that the plan does without them.
    """
    yield from asking(
        call,
        QuestionKind.PLAN_CHANGED,
        sentence=(
            f"The plan calls {call.path}, which has no record, where {unclaimed[0]} was "
            f"{done_before(call.snapshot, unclaimed[:1])} before: "
            f"code was inserted, moved or renamed. Accepting covers every call of {call.spec.name} in this body"
            f"{', and whatever else stands in the place of ' + listed(besides) if besides else ''}."
        ),
        evidence={"called": call.path, "finished_and_not_called_yet": list(unclaimed)},
        about={"paths": [call.path, *besides], "names": [call.declared]},
        once=f"plan {call.declared}",
    )


def ask_attempts_used(call: Call[Any], used: int, error: str) -> Steps[None]:
    """Ask about a call that was started as often as its policy allows; `error` is the last one recorded, if any."""
    last = f"; the last ended in {error}" if error else "; the process died each time"
    yield from asking(
        call,
        QuestionKind.ATTEMPTS_USED,
        sentence=f"{call.path} was started {counted(used, 'time')} without success{ended(last)}",
        evidence={"step": call.path, "starts": used, "error": error},
    )
