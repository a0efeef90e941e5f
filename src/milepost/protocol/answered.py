"""What a person's answer changes in the snapshot, one function per kind of question. Pure.

Called by the fold when an answer is entered; *stop* ends the run whatever was asked and does not come here.
"""

from __future__ import annotations

from collections.abc import Callable

from milepost.protocol.snapshot import Snapshot
from milepost.protocol.state import ApprovalState, EffectState, NewSend, StepState, settled_after
from milepost.records.model import AnswerEntered, QuestionAsked, QuestionKind


def _source(s: Snapshot, q: QuestionAsked, a: AnswerEntered) -> None:
    for key, fingerprint in q.about.get("accept", {}).items():
        s.accepted_sources[key] = (s.record_count, fingerprint)
    if a.choice == "keep":
        for path, fingerprint in q.about.get("inputs", {}).items():
            s.step_state(path).accepted_inputs = fingerprint  # of a step inside one whose records are not read, maybe
    else:
        _redo(s, q, a)


def _redo(s: Snapshot, q: QuestionAsked, a: AnswerEntered) -> None:
    s.redo_at = a.at
    for path in q.about.get("steps", ()):
        s.reopen(path)


def _request(s: Snapshot, q: QuestionAsked, a: AnswerEntered) -> None:
    state, digest = s.effect_state(q.path), str(q.about["request_digest"])
    if a.choice == "keep":
        state.accepted_request = digest
        return
    state.starts = 0
    state.allowed_anew = NewSend(digest, len(s.answered), q.question_id)  # until it is sent, what was applied stands


def _plan(s: Snapshot, q: QuestionAsked, a: AnswerEntered) -> None:
    s.accepted_plan.update(q.about.get("paths", ()))
    s.accepted_names.update(q.about.get("names", ()))


def _versions(s: Snapshot, q: QuestionAsked, a: AnswerEntered) -> None:
    if a.choice == "redo":
        s.redoing_versions = True
        _redo(s, q, a)


def _outcome(s: Snapshot, q: QuestionAsked, a: AnswerEntered) -> None:
    state = s.effect_state(q.path)
    if state.applied is not None:
        state.answered_result = a.result
    else:
        state.answer = a
        state.starts = 0


def _attempts(s: Snapshot, q: QuestionAsked, a: AnswerEntered) -> None:
    if not q.path:
        s.fruitless = 0
        return
    state: StepState | EffectState | None = s.effects.get(q.path) or s.steps.get(q.path)
    if state is not None:
        state.starts, state.failure = 0, None
    if isinstance(state, StepState):
        state.reopened = True  # the deadline counts anew as well


def _shadow_result(s: Snapshot, q: QuestionAsked, a: AnswerEntered) -> None:
    state = s.effect_state(q.path)
    if a.choice == "give":
        state.answered_result = a.result
    else:
        s.shadowed_count -= state.shadowed is not None
        state.shadowed = None  # recorded anew when the plan reaches it


def doubt_effects(s: Snapshot, *_: object) -> None:
    """There may have been sends that no record knows of, also of effects that were rejected before."""
    s.in_doubt = True
    for state in s.effects.values():
        state.in_doubt = not state.finished or state.allowed_anew is not None


def _limit(s: Snapshot, q: QuestionAsked, a: AnswerEntered) -> None:
    s.used.allow_again(str(q.about["limit"]), a.at)


def approval_asked(s: Snapshot, q: QuestionAsked) -> None:
    """Note an approval that is asked; it takes the place of what was answered before about the same call."""
    s.asked(q.about["when"])[q.path] = ApprovalState(q, s.record_count)
    s.declined.pop(q.path, None)


def approval_given(s: Snapshot, q: QuestionAsked, a: AnswerEntered) -> bool:
    """Note one answer to an approval; say whether it is settled by now. Raises: KeyError when nobody asked."""
    state = s.asked(q.about["when"])[q.path]
    state.given.append(a)
    return settled_after(q, [answer.choice for answer in state.given]) > 0


def leave_unasked(s: Snapshot, path: str) -> None:
    """Take back an open approval of what happened meanwhile, as a late landing or another answer says."""
    for question in [q for q in s.questions.values() if q.path == path]:
        if question.question_kind == QuestionKind.APPROVAL:
            s.void[question.question_id] = s.questions.pop(question.question_id)
            s.approvals.pop(path, None)  # another send of it is asked about anew


def _approval(s: Snapshot, q: QuestionAsked, a: AnswerEntered) -> None:
    if a.choice == "redo":
        s.reopen(q.path)
    elif a.choice == "decline":
        s.declined[q.path] = s.asked(q.about["when"])[q.path]
    s.declined.pop(q.about.get("declined_as", ""), None)  # decided anew where it is called now


ANSWERED: dict[QuestionKind, Callable[[Snapshot, QuestionAsked, AnswerEntered], None]] = {
    QuestionKind.SOURCE_CHANGED: _source,
    QuestionKind.REQUEST_CHANGED: _request,
    QuestionKind.PLAN_CHANGED: _plan,
    QuestionKind.VERSIONS_CHANGED: _versions,
    QuestionKind.OUTCOME_UNKNOWN: _outcome,
    QuestionKind.ATTEMPTS_USED: _attempts,
    QuestionKind.STORE_WENT_BACK: doubt_effects,
    QuestionKind.APPROVAL: _approval,
    QuestionKind.LIMIT_REACHED: _limit,
    QuestionKind.SHADOW_RESULT_NEEDED: _shadow_result,
}
"""For each kind of question, what its answer changes."""
